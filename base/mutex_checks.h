// A switch for the checks of Abseil's mutexes.
#ifndef BASE_MUTEX_CHECKS_H_
#define BASE_MUTEX_CHECKS_H_

namespace hvd {

// Turns off lock-order checking in the whole process. Debian's Abseil is built with this check,
// which finds deadlocks: a quarter of a busy daemon's work. Tests don't call this, so they have the
// check. Thread-safe.
void SwitchOffMutexChecks();

}  // namespace hvd

#endif  // BASE_MUTEX_CHECKS_H_
