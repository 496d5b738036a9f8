//! How much an annotation of a plan matters.

words! {
    /// How much an annotation matters.
    pub enum AnnotationImpact {
        /// Nothing changes.
        None = "none",
        /// Words change, and nothing that anyone follows.
        Low = "low",
        /// What is done, or how it is judged.
        Medium = "medium",
        /// What is wanted.
        High = "high",
    }
}
