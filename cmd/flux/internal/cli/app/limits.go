package app

// Concurrency is the maximum number of objects that a command processes at the
// same time.
const Concurrency = 16
