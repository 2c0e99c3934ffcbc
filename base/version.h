// The one place that says which version this is. Launcher, agents, daemon and workers of a job must
// agree on it.
#ifndef BASE_VERSION_H_
#define BASE_VERSION_H_

namespace hvd {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace hvd

#endif  // BASE_VERSION_H_
