package app

// Concurrency bounds how many objects a verb acts on at the same time.
const Concurrency = 16
