#include "launcher/cli/unavailable_flags.h"

namespace hvd::launcher::cli {
namespace {

constexpr char kNcclStreams[] = "NCCL has one stream here; leave it out";
constexpr char kMpi[] = "this version has no MPI; leave it out, Gloo is used instead";

constexpr char kProcesses[] =
    "give the number of all processes with -np, and the hosts with -H host1:2,host2:2";
constexpr char kOnce[] =
    "horovodrun is started once, on one machine, and starts the processes of all hosts; leave it "
    "out";
constexpr char kPlacement[] =
    "processes are placed host by host as -H says; --thread-affinity binds their threads";

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

const std::vector<options::FlagSpec>& ForeignFlags() {
  static const auto* const flags = new std::vector<options::FlagSpec>{
      WithValue("--nproc_per_node", kProcesses),
      WithValue("--nproc-per-node", kProcesses),
      WithValue("--nnodes", kProcesses),
      WithValue("--node_rank", kOnce),
      WithValue("--node-rank", kOnce),
      WithValue("--rdzv_endpoint", kOnce),
      WithValue("--rdzv-endpoint", kOnce),
      WithValue("--rdzv_backend", kOnce),
      WithValue("--rdzv-backend", kOnce),
      WithValue("--master_addr", kOnce),
      WithValue("--master-addr", kOnce),
      WithValue("--master_port", kOnce),
      WithValue("--master-port", kOnce),
      WithoutValue("--standalone", kOnce),
      WithValue("--max_restarts",
                "--min-np makes a job elastic, --max-failures limits its failures"),
      WithValue("--max-restarts",
                "--min-np makes a job elastic, --max-failures limits its failures"),
      WithoutValue("--allow-run-as-root", "root may run horovodrun; leave it out"),
      WithValue("--map-by", kPlacement),
      WithValue("--bind-to", kPlacement),
  };
  return *flags;
}

}  // namespace hvd::launcher::cli
