#include "launcher/cli/foreign_flags.h"

#include <regex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/cli/options.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::HasSubstr;

struct Line {
  const char* words;   // after "horovodrun"
  const char* answer;  // a part of the message
};

// What people type who know another launcher.
constexpr Line kLines[] = {
    // torchrun and python -m torch.distributed.launch
    {"--nproc_per_node 2 train.py", "with -np"},
    {"--nproc-per-node=gpu train.py", "with -np"},
    {"--nnodes 1:4 train.py", "-H host1:2,host2:2"},
    {"--standalone train.py", "leave it out"},
    {"--node_rank=0 train.py", "started once"},
    {"--master_addr a --master_port 1 train.py", "started once"},
    {"--rdzv-endpoint=a:1 train.py", "started once"},
    {"--rdzv_backend c10d train.py", "started once"},
    {"--max-restarts 3 train.py", "--min-np"},
    {"--local-ranks-filter 0 train.py", "--ranks-filter 0"},
    {"--log-dir logs train.py", "--output-filename"},
    {"--redirects 3 train.py", "--output-filename"},
    {"--tee 3 train.py", "leave it out"},
    {"--no-python train.sh", "any command"},
    {"--use_env train.py", "any command"},
    // mpirun and mpiexec
    {"-np 2 --host a:2,b:2 x", "-H host1:2,host2:2"},
    {"-np 2 -host a,b x", "-H host1:2,host2:2"},
    {"-np 2 -hosts a,b x", "-H host1:2,host2:2"},
    {"-np 2 -machinefile hosts x", "--hostfile FILE"},
    {"-np 2 -f hosts x", "--hostfile FILE"},
    {"-np 4 -ppn 2 x", "with -np"},
    {"-np 4 -N 2 x", "with -np"},
    {"-np 4 --map-by slot x", "host by host"},
    {"-np 4 -bind-to none x", "--thread-affinity"},
    {"-np 4 --oversubscribe x", "host by host"},
    {"-np 4 -mca btl self x", "no MPI"},
    {"-np 4 --allow-run-as-root x", "leave it out"},
    {"-np 4 -genv A 1 x", "-x NAME=VALUE"},
    {"-np 4 -wdir /tmp x", "this directory"},
    {"-np 4 --tag-output x", "with its rank in front"},
    {"-np 4 --timestamp-output x", "--prefix-timestamp"},
    {"-np 4 --display-map x", "--dry-run"},
    // srun and sbatch
    {"--ntasks 4 x", "with -np"},
    {"--ntasks-per-node=2 x", "with -np"},
    {"-n 4 -c 2 x", "OMP_NUM_THREADS"},
    {"-n 4 --gres=gpu:2 x", "with -np"},
    {"-n 4 --nodelist a,b x", "-H host1:2,host2:2"},
    {"-n 4 -w a,b x", "-H host1:2,host2:2"},
    {"-n 4 --export=ALL x", "-x NAME=VALUE"},
    {"-n 4 --partition gpu x", "scheduler"},
    {"-n 4 --label x", "with its rank in front"},
    {"-n 4 -o out.txt x", "--output-filename"},
    {"-n 4 --time 10 x", "timeout 1h"},
    {"-n 4 --mpi=pmix x", "no MPI"},
    // deepspeed
    {"--num_gpus 2 train.py", "with -np"},
    {"--num_nodes=2 train.py", "with -np"},
    {"--include localhost:0,1 train.py", "CUDA_VISIBLE_DEVICES"},
    {"--exclude a:0 train.py", "CUDA_VISIBLE_DEVICES"},
    {"--launcher_args x train.py", "--launcher"},
    {"--enable_each_rank_log logs train.py", "--output-filename"},
    {"--elastic_training train.py", "--min-np"},
    // accelerate
    {"--num_processes 2 train.py", "with -np"},
    {"--num_machines 2 train.py", "with -np"},
    {"--main_process_port 0 train.py", "started once"},
    {"--mixed_precision fp16 train.py", "the script"},
    // Ray
    {"--num-cpus 2 python train.py", "with -np"},
    {"--address a:1 python train.py", "started once"},
    {"--working-dir . python train.py", "this directory"},
    {"--runtime-env-json {} python train.py", "-x NAME=VALUE"},
    // jsrun
    {"--nrs 2 --tasks_per_rs 1 x", "with -np"},
};

TEST(ForeignFlags, LinesOfOtherLaunchers_AreAnsweredInOneLine) {
  for (const Line& line : kLines) {
    const auto options = ParseOptions(absl::StrSplit(line.words, ' '), {});
    ASSERT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << line.words;
    const std::string message(options.status().message());
    EXPECT_THAT(message, HasSubstr("is not available: ")) << line.words;
    EXPECT_THAT(message, HasSubstr(line.answer)) << line.words;
    EXPECT_FALSE(absl::StrContains(message, '\n')) << message;
  }
}

// Words that other launchers share with this one.
TEST(ForeignFlags, LinesThatMeanTheSame_Work) {
  for (const char* line :
       {"-n 4 x", "-np 4 -x VARIABLE=1 x", "-np 4 --hostfile hosts x", "-np 4 -hostfile hosts x",
        "-np 4 -H a:2,b:2 x", "-np 2 -m pkg.train", "-np 2 --module pkg.train", "-np auto x"}) {
    EXPECT_TRUE(ParseOptions(absl::StrSplit(line, ' '), {}).ok()) << line;
  }
}

// Every option that an answer recommends exists, and none is itself foreign.
TEST(ForeignFlags, AnswersNameOptionsThatExist) {
  const std::string help = HelpText();
  std::set<std::string> foreign;
  for (const options::FlagSpec& flag : ForeignFlags()) {
    foreign.insert(flag.spellings.begin(), flag.spellings.end());
  }
  const std::regex option("(^|[ :])(--?[a-zA-Z][a-z-]*)");
  for (const options::FlagSpec& flag : ForeignFlags()) {
    const std::string& answer = flag.unavailable;
    for (std::sregex_iterator found(answer.begin(), answer.end(), option), end; found != end;
         ++found) {
      const std::string name = (*found)[2];
      EXPECT_THAT(help, ::testing::ContainsRegex(absl::StrCat("[ ,]", name, "[ ,]"))) << answer;
      EXPECT_EQ(foreign.count(name), 0u) << answer;
    }
  }
}

TEST(ForeignFlags, EachIsListedOnce) {
  std::set<std::string> seen;
  for (const options::FlagSpec& flag : ForeignFlags()) {
    for (const std::string& spelling : flag.spellings) {
      EXPECT_TRUE(seen.insert(spelling).second) << spelling;
    }
  }
}

}  // namespace
}  // namespace hvd::launcher::cli
