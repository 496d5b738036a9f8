//! What the fuzz targets share.

pub mod check;
pub mod criteria;
pub mod lists;
pub mod papers;
