#include "agent/torch_variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

pb::StartWorker Start() {
  pb::StartWorker start;
  start.mutable_placement()->set_rank(5);
  start.mutable_placement()->set_size(6);
  start.mutable_placement()->set_local_rank(1);
  start.mutable_placement()->set_local_size(2);
  start.mutable_torch()->set_group_rank(2);
  start.mutable_torch()->set_groups(3);
  start.mutable_torch()->set_store_address("[fe80::1]:4321");
  return start;
}

TEST(TorchVariablesTest, StaticJob_HasAll) {
  std::map<std::string, std::string> environment;
  SetTorchVariables(Start(), &environment);
  EXPECT_THAT(environment, ElementsAre(Pair("GROUP_RANK", "2"), Pair("GROUP_WORLD_SIZE", "3"),
                                       Pair("LOCAL_RANK", "1"), Pair("LOCAL_WORLD_SIZE", "2"),
                                       Pair("MASTER_ADDR", "fe80::1"), Pair("MASTER_PORT", "4321"),
                                       Pair("RANK", "5"), Pair("ROLE_RANK", "5"),
                                       Pair("ROLE_WORLD_SIZE", "6"), Pair("WORLD_SIZE", "6")));
}

TEST(TorchVariablesTest, UsersStore_Stays) {
  std::map<std::string, std::string> environment = {{"MASTER_PORT", "29500"}, {"RANK", "7"}};
  SetTorchVariables(Start(), &environment);
  EXPECT_EQ(environment["MASTER_PORT"], "29500");
  EXPECT_EQ(environment["MASTER_ADDR"], "fe80::1");
  EXPECT_EQ(environment["RANK"], "5");
}

TEST(TorchVariablesTest, NoPortWasReserved_NoStore) {
  pb::StartWorker start = Start();
  start.mutable_torch()->clear_store_address();
  std::map<std::string, std::string> environment;
  SetTorchVariables(start, &environment);
  EXPECT_EQ(environment.count("MASTER_ADDR") + environment.count("MASTER_PORT"), 0);
  EXPECT_EQ(environment["RANK"], "5");
}

TEST(TorchVariablesTest, ElasticJob_HasNone) {
  pb::StartWorker start = Start();
  start.clear_torch();
  std::map<std::string, std::string> environment;
  SetTorchVariables(start, &environment);
  EXPECT_THAT(environment, IsEmpty());
}

}  // namespace
}  // namespace hvd::agent
