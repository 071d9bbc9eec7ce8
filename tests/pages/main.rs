//! Pages that must say what the code says.

mod coverage;
