// The version of this project. tools/build writes the Python package's version from it, and
// launcher, agents, daemon and workers of a job must agree on it.
#ifndef BASE_VERSION_H_
#define BASE_VERSION_H_

namespace hvd {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace hvd

#endif  // BASE_VERSION_H_
