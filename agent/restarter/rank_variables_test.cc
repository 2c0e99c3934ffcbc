#include "agent/restarter/rank_variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::agent::restarter {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

// Two ranks on the first machine, one on the second.
RankInWorld World(int rank) {
  return {"job", 3,          {{0, 3, 0, 2, 0, 2}, {1, 3, 1, 2, 0, 1}, {2, 3, 0, 1, 1, 2}},
          rank,  "10.0.0.1", 4000};
}

TEST(RankVariablesTest, AreThoseOfTorchrun) {
  const Environment variables = RankVariables({{"PATH", "/bin"}}, World(1));
  for (const auto& [name, value] : Environment{{"PATH", "/bin"},
                                               {"RANK", "1"},
                                               {"WORLD_SIZE", "3"},
                                               {"LOCAL_RANK", "1"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"GROUP_RANK", "0"},
                                               {"GROUP_WORLD_SIZE", "2"},
                                               {"MASTER_ADDR", "10.0.0.1"},
                                               {"MASTER_PORT", "4000"},
                                               {"TORCHELASTIC_RUN_ID", "restarted-job"},
                                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                                               {"TORCHELASTIC_MAX_RESTARTS", "20"},
                                               {"HOROVOD_RANK", "1"}}) {
    EXPECT_THAT(variables, Contains(Pair(name, value)));
  }
  EXPECT_THAT(RankVariables({}, World(2)), Contains(Pair("GROUP_RANK", "1")));
}

TEST(RankVariablesTest, ReplaceThoseOfAnEarlierWorld_KeepTheLaunchers) {
  const Environment own{{"RANK", "7"}, {"MASTER_PORT", "1"}, {"TORCHELASTIC_MAX_RESTARTS", "5"}};
  const Environment variables = RankVariables(own, World(0));
  EXPECT_THAT(variables, Contains(Pair("RANK", "0")));
  EXPECT_THAT(variables, Contains(Pair("MASTER_PORT", "4000")));
  EXPECT_THAT(variables, Contains(Pair("TORCHELASTIC_MAX_RESTARTS", "5")));
}

TEST(RankVariablesTest, LeaveOutWhatMakesAWorker) {
  const Environment variables = RankVariables(
      {{"HOROVOD_AGENT_SOCKET", "s"}, {"HOROVOD_WORKER_WORD", "w"}, {"HOROVOD_ELASTIC", "1"}},
      World(0));
  EXPECT_THAT(variables, Not(Contains(Key("HOROVOD_AGENT_SOCKET"))));
  EXPECT_THAT(variables, Not(Contains(Key("HOROVOD_WORKER_WORD"))));
  EXPECT_THAT(variables, Not(Contains(Key("HOROVOD_ELASTIC"))));
}

}  // namespace
}  // namespace hvd::agent::restarter
