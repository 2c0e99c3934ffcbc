#include "agent/worker_log.h"

#include <string>

#include "gtest/gtest.h"

namespace hvd::agent {
namespace {

pb::AgentMessage Started(uint64_t id) {
  pb::AgentMessage message;
  message.mutable_started()->set_worker_id(id);
  message.mutable_started()->set_pid(static_cast<int64_t>(100 + id));
  return message;
}

pb::AgentMessage Dying(uint64_t id) {
  pb::AgentMessage message;
  message.mutable_dying()->set_worker_id(id);
  return message;
}

pb::AgentMessage Exited(uint64_t id) {
  pb::AgentMessage message;
  message.mutable_exited()->set_worker_id(id);
  return message;
}

std::string Told(const WorkerLog& log) {
  std::string text;
  for (const pb::AgentMessage& message : log.Messages()) text += message.ShortDebugString() + ";";
  return text;
}

TEST(WorkerLogTest, AddKnown_SecondTime_SaysSo) {
  WorkerLog log;
  EXPECT_TRUE(log.AddKnown(7));
  EXPECT_FALSE(log.AddKnown(7));
  EXPECT_TRUE(log.AddKnown(3));
  EXPECT_EQ(log.Known(), (std::vector<uint64_t>{3, 7}));
}

TEST(WorkerLogTest, Messages_SomeEnded_StartsOfTheOthersThenExits) {
  WorkerLog log;
  for (const uint64_t id : {1, 2, 3}) log.Add(Started(id));
  log.Add(Dying(1));
  log.Add(Exited(1));
  log.Add(Dying(3));
  EXPECT_EQ(Told(log),
            "started { worker_id: 2 pid: 102 };started { worker_id: 3 pid: 103 };"
            "dying { worker_id: 3 };exited { worker_id: 1 };");
}

TEST(WorkerLogTest, Messages_ManyExits_OldestAreForgotten) {
  WorkerLog log;
  for (uint64_t id = 1; id <= WorkerLog::kMaxExits + 5; ++id) {
    log.AddKnown(id);
    log.Add(Started(id));
    log.Add(Exited(id));
  }
  const auto messages = log.Messages();
  ASSERT_EQ(messages.size(), WorkerLog::kMaxExits);
  EXPECT_EQ(messages.front().exited().worker_id(), 6u);
  EXPECT_EQ(log.Known().size(), WorkerLog::kMaxExits + 5);
}

}  // namespace
}  // namespace hvd::agent
