"""The Gang Scheduler's experiment (seed 000): the T3D's work under space sharing, and scheduled by class."""
