#include "rendezvous/bootstrap/worker_word.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::rendezvous::bootstrap {
namespace {

pb::WorkerHello Hello(const std::string& word) {
  pb::WorkerHello hello;
  hello.set_worker_id(3);
  hello.set_word(word);
  return hello;
}

TEST(WorkerWordTest, NewWorkerWord_Twice_AreLongAndDiffer) {
  EXPECT_EQ(NewWorkerWord().size(), 32u);
  EXPECT_NE(NewWorkerWord(), NewWorkerWord());
}

TEST(WorkerWordTest, CheckWorkerWord_OnlyTheWholeWord_IsTaken) {
  const std::string word = NewWorkerWord();
  EXPECT_TRUE(CheckWorkerWord(word, Hello(word)).ok());
  for (const std::string& wrong : {word.substr(1), word + "0", std::string(32, '0')}) {
    const absl::Status refused = CheckWorkerWord(word, Hello(wrong));
    EXPECT_TRUE(absl::IsPermissionDenied(refused));
    EXPECT_NE(refused.message().find("worker 3"), absl::string_view::npos);
    EXPECT_NE(refused.message().find("is wrong"), absl::string_view::npos);
  }
  const absl::Status missing = CheckWorkerWord(word, Hello(""));
  EXPECT_TRUE(absl::IsPermissionDenied(missing));
  EXPECT_NE(missing.message().find("is missing"), absl::string_view::npos);
}

TEST(WorkerWordTest, WorkerSocketNamesOf_AreTheKeysOwn) {
  const std::vector<std::string> names = WorkerSocketNamesOf("key");
  EXPECT_EQ(WorkerSocketNamesOf("key"), names);
  std::set<std::string> all(names.begin(), names.end());
  for (const std::string& name : WorkerSocketNamesOf("another")) all.insert(name);
  EXPECT_EQ(all.size(), 2 * names.size());
}

}  // namespace
}  // namespace hvd::rendezvous::bootstrap
