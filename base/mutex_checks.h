// What Abseil's mutexes check, in programs of ours.
#ifndef BASE_MUTEX_CHECKS_H_
#define BASE_MUTEX_CHECKS_H_

namespace hvd {

// Has mutexes no longer note in which order they are locked, in the whole process. Debian's Abseil
// is built so that it does, to find deadlocks: a quarter of what a busy daemon would do. Tests,
// which don't call this, look for them. Thread-safe.
void SwitchOffMutexChecks();

}  // namespace hvd

#endif  // BASE_MUTEX_CHECKS_H_
