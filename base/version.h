// The version of this project, said here alone: tools/build writes the Python package's from it.
// Launcher, agents, daemon and workers of a job must agree on it.
#ifndef BASE_VERSION_H_
#define BASE_VERSION_H_

namespace hvd {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace hvd

#endif  // BASE_VERSION_H_
