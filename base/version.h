// The version of this project. tools/build writes the Python package's version from it. Launcher,
// daemon and agents of a job must have the same one, which is checked when an agent starts and
// attaches; a journal is read by the version that wrote it only. Calls of workers carry no version:
// Python and libhvd.so compare HVD_ABI_VERSION (worker_runtime/api/hvd_c_api.h) instead.
#ifndef BASE_VERSION_H_
#define BASE_VERSION_H_

namespace hvd {

inline constexpr char kVersion[] = "1.0.0";

}  // namespace hvd

#endif  // BASE_VERSION_H_
