//! What the scheduler decides, case by case.
