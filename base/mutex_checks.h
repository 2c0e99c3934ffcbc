// The switch for the deadlock detection of Abseil's mutexes.
#ifndef BASE_MUTEX_CHECKS_H_
#define BASE_MUTEX_CHECKS_H_

namespace hvd {

// Turns off lock-order checking in the whole process. Debian's Abseil is built with this check,
// which costs a busy daemon a quarter of its CPU time. Tests don't call this function, so the check
// is active in tests. Thread-safe.
void SwitchOffMutexChecks();

}  // namespace hvd

#endif  // BASE_MUTEX_CHECKS_H_
