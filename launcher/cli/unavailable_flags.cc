#include "launcher/cli/unavailable_flags.h"

namespace hvd::launcher::cli {
namespace {

constexpr char kNcclStreams[] = "NCCL has one stream here; leave it out";
constexpr char kMpi[] = "this version has no MPI; leave it out, Gloo is used instead";

options::FlagSpec WithValue(const char* name, const char* why) { return {name, {name}, true, why}; }
options::FlagSpec WithoutValue(const char* name, const char* why) {
  return {name, {name}, false, why};
}

}  // namespace

const std::vector<options::FlagSpec>& UnavailableFlags() {
  static const auto* const flags = new std::vector<options::FlagSpec>{
      WithValue("--num-nccl-streams", kNcclStreams),
      WithoutValue("--mpi", kMpi),
      WithoutValue("--mpi-threads-disable", kMpi),
      WithValue("--mpi-args", "this version has no MPI; use -x for environment variables instead"),
      WithoutValue("--tcp", "it is for Spectrum MPI; leave it out, Gloo uses TCP anyway"),
      WithoutValue(
          "--jsrun",
          "this version has no jsrun; leave it out: in a job of LSF blaunch starts the processes"),
      WithValue("--binding-args", "this version has no jsrun; use --thread-affinity instead"),
  };
  return *flags;
}

}  // namespace hvd::launcher::cli
