#include "launcher/cli/foreign_flags.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hvd::launcher::cli {
namespace {

// Flags with the same answer. A word without a dash stands for "--word", and if it has several
// parts also for "--wo_rd"; a word with a dash for itself.
struct Row {
  absl::string_view words;  // separated by blanks
  const char* answer;
};

constexpr Row kRows[] = {
    // Numbers of processes
    {"nproc-per-node nnodes num-nodes num-processes num-machines num-gpus num-cpus devices ntasks "
     "tasks nodes ntasks-per-node ntasks-per-socket npernode npersocket ppn perhost tasks-per-rs "
     "nrs "
     "rs-per-host gpus gpus-per-node gpus-per-task gres -npernode -ppn -perhost -N",
     "give the number of all processes with -np, and the hosts with -H host1:2,host2:2; in a "
     "scheduler's job leave both out"},
    {"cpus-per-task num-cpu-threads-per-process -c",
     "-np gives the number of processes, -x OMP_NUM_THREADS=N that of each one's threads"},
    // Hosts
    {"host nodelist worker-list -host -hosts -w",
     "give the hosts with their numbers of processes: -H host1:2,host2:2"},
    {"machinefile rankfile -machinefile -rankfile -rf -f",
     "--hostfile FILE takes lines of the form: name slots=N"},
    {"include exclude gpu-ids",
     "-H host1:2,host2:2 gives hosts and numbers of processes, CUDA_VISIBLE_DEVICES a host's GPUs"},
    {"partition account qos exclusive mem",
     "it belongs to the scheduler's own command, such as sbatch; horovodrun uses that job's hosts"},
    // One command for all hosts
    {"node-rank rdzv-endpoint rdzv-backend rdzv-id rdzv-conf master-addr master-port local-addr "
     "standalone machine-rank main-process-ip main-process-port head address no-ssh force-multi "
     "no-ssh-check same-network",
     "horovodrun is started once, on one machine, and starts the processes of all hosts; leave it "
     "out"},
    {"launcher-args bootstrap mca prtemca pmca gmca tune hetero-nodes -mca",
     "this version has no MPI; --launcher 'COMMAND {host}' reaches hosts by a command of yours"},
    // Elastic jobs
    {"max-restarts monitor-interval elastic-training enable-recovery",
     "--min-np makes a job elastic, --max-failures limits its failures, and --elastic-restart "
     "starts "
     "an unchanged script again as torchrun does"},
    {"min-nodes min-elastic-nodes min-workers", "--min-np gives the smallest number of processes"},
    {"max-nodes max-elastic-nodes max-workers", "--max-np gives the largest number of processes"},
    // Placement
    {"map-by rank-by bind-to cpu-bind numa-binding bind-cores-to-rank bind-core-list distribution "
     "report-bindings oversubscribe cpu-per-rs gpu-per-rs -map-by -rank-by -bind-to "
     "-report-bindings -oversubscribe",
     "processes are placed host by host as -H says; --thread-affinity binds their threads"},
    // The processes
    {"env genv export runtime-env runtime-env-json -env -genv",
     "-x NAME=VALUE sets a variable of all processes"},
    {"envall genvall -envall -genvall", "processes have all variables of this one; leave it out"},
    {"wdir wd chdir working-dir -wdir -wd -D",
     "processes start in this directory; change to another one before"},
    {"no-python run-path use-env",
     "horovodrun runs any command, as in horovodrun -np 2 python train.py; leave it out"},
    {"multi-gpu cpu mixed-precision strategy accelerator dynamo-backend",
     "the script decides on it, by the framework's own means; leave it out"},
    {"allow-run-as-root -allow-run-as-root", "root may run horovodrun; leave it out"},
    {"kill-on-bad-exit", "a process that fails ends a job of fixed size; leave it out"},
    {"time timeout -timeout", "timeout 1h horovodrun ... ends a job after an hour"},
    // Output
    {"local-ranks-filter", "--ranks-filter 0 shows only rank 0's output"},
    {"log-dir enable-each-rank-log redirects output output-dir error outfile-pattern "
     "errfile-pattern -o -e -r",
     "--output-filename FOLDER writes each rank's output to files"},
    {"tee label tag-output prepend-rank unbuffered merge-stderr-to-stdout -l -u -tag-output "
     "-prepend-rank",
     "all output comes here at once, with its rank in front; leave it out"},
    {"timestamp-output -timestamp-output", "--prefix-timestamp begins each line with the time"},
    {"display display-map display-allocation -display-map -display-allocation",
     "--dry-run shows hosts and ranks, --verbose shows them when the job starts"},
    {"iface -iface", "--network-interfaces names the interfaces"},
};

options::FlagSpec SpecOf(absl::string_view word, const char* answer) {
  options::FlagSpec spec;
  spec.unavailable = answer;
  spec.exact = true;
  if (word[0] == '-') {
    spec.spellings = {std::string(word)};
  } else {
    spec.spellings = {absl::StrCat("--", word)};
    if (word.find('-') != word.npos) {
      spec.spellings.push_back(absl::StrCat("--", absl::StrReplaceAll(word, {{"-", "_"}})));
    }
  }
  spec.name = spec.spellings.front();
  return spec;
}

}  // namespace

const std::vector<options::FlagSpec>& ForeignFlags() {
  static const auto* const flags = [] {
    auto* all = new std::vector<options::FlagSpec>;
    for (const Row& row : kRows) {
      for (const absl::string_view word : absl::StrSplit(row.words, ' ')) {
        all->push_back(SpecOf(word, row.answer));
      }
    }
    return all;
  }();
  return *flags;
}

}  // namespace hvd::launcher::cli
