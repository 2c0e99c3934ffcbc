#include "launcher/allocation/find_allocation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "launcher/allocation/excerpt.h"
#include "launcher/allocation/host_files.h"
#include "launcher/allocation/slurm_allocation.h"

namespace hvd::launcher::allocation {
namespace {

std::string ValueOf(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

absl::Status Broken(const std::string& scheduler, const std::string& where, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("can't make sense of ", scheduler,
                                                 "'s list of hosts in ", where, ": ", why,
                                                 "; give -np and the job's hosts with -H"));
}

// The number of the job's GPUs on this host. The other hosts are assumed to have as many.
int CountGpus(const Environment& environment) {
  int gpus = 0;
  const std::string devices = ValueOf(environment, "CUDA_VISIBLE_DEVICES");
  for (const absl::string_view device : absl::StrSplit(devices, ',', absl::SkipEmpty())) {
    // Both mean that no GPU follows: CUDA stops at the first invalid entry, and Slurm sets
    // "NoDevFiles" for a job without GPUs.
    if (device == "-1" || device == "NoDevFiles") break;
    ++gpus;
  }
  return gpus;
}

Allocation MakeAllocation(std::string job, std::string source, std::string launcher,
                          const HostCounts& hosts, int gpus, bool by_gpu) {
  Allocation allocation;
  allocation.job = std::move(job);
  allocation.source = std::move(source);
  allocation.slot = by_gpu ? "GPU" : "slot";
  allocation.launcher = std::move(launcher);
  for (const auto& [name, slots] : hosts) {
    allocation.hosts.push_back({name, by_gpu ? gpus : slots, gpus});
  }
  return allocation;
}

// A variable and the file that it names, for messages.
std::string FileOf(const Environment& environment, const std::string& variable) {
  return absl::StrCat(variable, " (", Excerpt(ValueOf(environment, variable)), ")");
}

using Parse = absl::StatusOr<HostCounts> (*)(absl::string_view text);

// Reads the hosts from the file that a variable names.
absl::StatusOr<HostCounts> ReadHosts(const Environment& environment, const std::string& scheduler,
                                     const std::string& variable, const ReadFile& read_file,
                                     Parse parse) {
  const std::string where = FileOf(environment, variable);
  const std::optional<std::string> text = read_file(ValueOf(environment, variable));
  if (!text.has_value()) return Broken(scheduler, where, "this file can't be read");
  absl::StatusOr<HostCounts> hosts = parse(*text);
  return hosts.ok() ? hosts : Broken(scheduler, where, hosts.status().message());
}

// The file LSB_DJOB_HOSTFILE takes precedence over the variable LSB_MCPU_HOSTS.
absl::StatusOr<Allocation> ReadLsf(const Environment& environment, const ReadFile& read_file) {
  const std::string list = ValueOf(environment, "LSB_MCPU_HOSTS");
  std::string source = absl::StrCat("LSB_MCPU_HOSTS='", Excerpt(list), "'");
  absl::StatusOr<HostCounts> hosts;
  if (list.empty() || !ValueOf(environment, "LSB_DJOB_HOSTFILE").empty()) {
    source = FileOf(environment, "LSB_DJOB_HOSTFILE");
    hosts = ReadHosts(environment, "LSF", "LSB_DJOB_HOSTFILE", read_file, ParseRepeatedHosts);
    RETURN_IF_ERROR(hosts.status());
  } else {
    hosts = ParseHostsAndCounts(list);
    if (!hosts.ok()) return Broken("LSF", source, hosts.status().message());
  }
  const int gpus = CountGpus(environment);
  return MakeAllocation(absl::StrCat("LSF's job ", Excerpt(ValueOf(environment, "LSB_JOBID"))),
                        std::move(source), "blaunch", *hosts, gpus, gpus > 0);
}

absl::StatusOr<Allocation> ReadPbs(const Environment& environment, const ReadFile& read_file) {
  ASSIGN_OR_RETURN(const HostCounts hosts,
                   ReadHosts(environment, "PBS", "PBS_NODEFILE", read_file, ParseRepeatedHosts));
  const int gpus = CountGpus(environment);
  const bool one_each =
      std::all_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.second == 1; });
  // PBS lists a host once for each task (mpiprocs). One each is the default, and then the GPUs
  // count; another number is what the user has asked for.
  return MakeAllocation(absl::StrCat("PBS's job ", Excerpt(ValueOf(environment, "PBS_JOBID"))),
                        FileOf(environment, "PBS_NODEFILE"), "pbs_tmrsh", hosts, gpus,
                        gpus > 0 && one_each);
}

absl::StatusOr<Allocation> ReadGridEngine(const Environment& environment,
                                          const ReadFile& read_file) {
  ASSIGN_OR_RETURN(const HostCounts hosts, ReadHosts(environment, "Grid Engine", "PE_HOSTFILE",
                                                     read_file, ParsePeHostfile));
  const int gpus = CountGpus(environment);
  return MakeAllocation(absl::StrCat("Grid Engine's job ", Excerpt(ValueOf(environment, "JOB_ID"))),
                        FileOf(environment, "PE_HOSTFILE"), "qrsh", hosts, gpus, gpus > 0);
}

}  // namespace

absl::StatusOr<std::optional<Allocation>> FindAllocation(const Environment& environment,
                                                         const ReadFile& read_file) {
  // Each scheduler is detected by its host list, not by the job's number: the number is also set in
  // sessions that a user has opened on one of the job's hosts.
  if (environment.count("SLURM_JOB_NODELIST") + environment.count("SLURM_HET_SIZE") > 0) {
    return ReadSlurmAllocation(environment);
  }
  if (environment.count("LSB_DJOB_HOSTFILE") + environment.count("LSB_MCPU_HOSTS") > 0) {
    return ReadLsf(environment, read_file);
  }
  if (environment.count("PBS_NODEFILE") > 0) return ReadPbs(environment, read_file);
  if (environment.count("PE_HOSTFILE") > 0) return ReadGridEngine(environment, read_file);
  return std::nullopt;
}

std::optional<std::string> ReadWholeFile(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return std::nullopt;  // a FIFO has no end
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (!in || (in.peek() != EOF && !(text << in.rdbuf())) || in.bad()) return std::nullopt;
  return text.str();
}

}  // namespace hvd::launcher::allocation
