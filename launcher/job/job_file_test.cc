#include "launcher/job/job_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

std::string Realm() {
  return absl::StrCat("test-", getpid(), "-",
                      testing::UnitTest::GetInstance()->current_test_info()->name());
}

pb::JobFile Job(const std::string& id) {
  pb::JobFile job;
  job.set_job_id(id);
  job.set_pid(7);
  job.add_addresses("127.0.0.1:1");
  job.mutable_credentials()->set_token("secret \"token\"\n");
  return job;
}

TEST(JobFileTest, Write_RunningJob_IsFoundUntilItEnds) {
  EXPECT_TRUE(RunningJobs(Realm()).empty());
  auto second = JobFile::Write(Realm(), Job("b"));
  ASSERT_TRUE(second.ok()) << second.status();
  auto first = JobFile::Write(Realm(), Job("a"));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto jobs = RunningJobs(Realm());
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].DebugString(), Job("a").DebugString());
  first->reset();
  ASSERT_EQ(RunningJobs(Realm()).size(), 1u);
  second->reset();
  EXPECT_TRUE(RunningJobs(Realm()).empty());
}

TEST(JobFileTest, RunningJobs_OfAKilledProcess_AreGone) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto file = JobFile::Write(Realm(), Job("dead"));
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(file.ok() ? 0 : 1);
  }
  // The child's realm has its own process id in it.
  std::string realm = Realm();
  realm.replace(0, absl::StrCat("test-", getpid()).size(), absl::StrCat("test-", child));
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(RunningJobs(realm).size(), 1u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(RunningJobs(realm).empty());
  close(ready[0]);
  close(ready[1]);
}

TEST(JobFileTest, RunningJobs_OtherRealms_AreNotSeen) {
  const auto file = JobFile::Write(Realm() + "-other", Job("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(RunningJobs(Realm()).empty());
}

// As in a setuid program: the process is this user's, the file another user's.
TEST(JobFileTest, RunningJobs_FilesOfOtherUsers_AreNotRead) {
  const Fd file(memfd_create(Realm().c_str(), MFD_CLOEXEC));
  const std::string text = Job("a").DebugString();
  ASSERT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(RunningJobs(Realm()).size(), 1u);
  if (fchown(file.get(), 65534, 65534) != 0) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(RunningJobs(Realm()).empty());
}

}  // namespace
}  // namespace hvd::launcher::job
