#include "base/os/process.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "base/os/process_tree.h"
#include "gtest/gtest.h"

namespace hvd::os {
namespace {

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c", script};
  return options;
}

// Reads until the last writer has closed the pipe.
std::string ReadAll(Fd& fd) {
  std::string text;
  char buffer[4096];
  for (IoResult got; !(got = ReadSome(fd.get(), buffer, sizeof(buffer))).end;) {
    text.append(buffer, got.bytes);
  }
  return text;
}

// The program's output on stdout.
std::string OutputOf(SpawnOptions options) {
  Pipe pipe = MakePipe().value();
  options.stdout_fd = pipe.write.get();
  Process process = Process::Spawn(options).value();
  pipe.write.reset();
  return ReadAll(pipe.read);
}

TEST(ProcessTest, Wait_ExitsByItself_GivesCode) {
  Process process = Process::Spawn(Shell("exit 7")).value();
  const ExitStatus status = process.Wait();
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_EQ(status.signal, 0);
}

TEST(ProcessTest, Wait_KilledBySignal_GivesSignal) {
  Process process = Process::Spawn(Shell("kill -TERM $$")).value();
  EXPECT_EQ(process.Wait().signal, SIGTERM);
}

TEST(ProcessTest, PeekExit_PidfdReadable_GivesStatusAndKeepsZombie) {
  Process process = Process::Spawn(Shell("exit 3")).value();
  pollfd poll_fd = {process.pidfd(), POLLIN, 0};
  ASSERT_EQ(poll(&poll_fd, 1, -1), 1);
  EXPECT_EQ(process.PeekExit()->exit_code, 3);
  EXPECT_EQ(kill(process.pid(), 0), 0);
  EXPECT_EQ(process.Wait().exit_code, 3);
}

TEST(ProcessTest, PeekExit_StillRuns_GivesNothing) {
  Process process = Process::Spawn(Shell("sleep 1000")).value();
  EXPECT_FALSE(process.PeekExit().has_value());
}

TEST(ProcessTest, Spawn_NoSuchProgram_IsNotFound) {
  SpawnOptions options;
  options.file = "/nonexistent/program";
  options.argv = {"program"};
  const absl::Status status = Process::Spawn(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/program"), absl::string_view::npos);
  EXPECT_TRUE(ChildrenOf(getpid()).empty());
}

TEST(ProcessTest, Spawn_NotExecutable_IsPermissionDenied) {
  SpawnOptions options;
  options.file = "/etc/passwd";
  options.argv = {"passwd"};
  EXPECT_EQ(Process::Spawn(options).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(ProcessTest, Spawn_NoSuchDirectory_IsNotFound) {
  SpawnOptions options = Shell("true");
  options.working_directory = "/nonexistent/directory";
  const absl::Status status = Process::Spawn(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("/nonexistent/directory"), absl::string_view::npos);
}

TEST(ProcessTest, Spawn_EnvironmentAndDirectory_AreExactlyThose) {
  SpawnOptions options = Shell("/usr/bin/env; pwd");
  options.environment = std::vector<std::string>{"A=b c"};
  options.working_directory = "/usr";
  const std::string output = OutputOf(options);
  EXPECT_NE(output.find("A=b c\n"), std::string::npos);
  EXPECT_NE(output.find("/usr\n"), std::string::npos);
  EXPECT_EQ(output.find("HOME="), std::string::npos);
}

TEST(ProcessTest, Spawn_NoDescriptorButStdio_IsOpenInChild) {
  Fd leaked(open("/dev/null", O_RDONLY));  // without O_CLOEXEC, as some library might
  EXPECT_EQ(OutputOf(Shell("test -e /proc/$$/fd/" + std::to_string(leaked.get()) + "; echo $?")),
            "1\n");
}

TEST(ProcessTest, Spawn_SignalsBlockedAndIgnoredHere_AreDefaultInChild) {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  signal(SIGTERM, SIG_IGN);
  Process process = Process::Spawn(Shell("kill -TERM $$; exit 0")).value();
  signal(SIGTERM, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(process.Wait().signal, SIGTERM);
}

TEST(ProcessTest, Spawn_StdioSwapped_EndsUpWhereAsked) {
  Pipe out = MakePipe().value();
  Pipe err = MakePipe().value();
  SpawnOptions options = Shell("echo out; echo err >&2");
  options.stdout_fd = out.write.get();
  options.stderr_fd = err.write.get();
  Process process = Process::Spawn(options).value();
  out.write.reset();
  err.write.reset();
  EXPECT_EQ(ReadAll(out.read), "out\n");
  EXPECT_EQ(ReadAll(err.read), "err\n");
}

TEST(ProcessTest, SignalGroup_ChildHasChildren_ReachesThem) {
  Pipe pipe = MakePipe().value();
  SpawnOptions options = Shell("sleep 1000 & echo started; wait");
  options.stdout_fd = pipe.write.get();
  Process process = Process::Spawn(options).value();
  pipe.write.reset();
  char byte;
  ASSERT_EQ(ReadSome(pipe.read.get(), &byte, 1).bytes, 1u);
  process.SignalGroup(SIGKILL);
  ReadAll(pipe.read);  // ends only when the grandchild is gone too
  EXPECT_EQ(process.Wait().signal, SIGKILL);
}

TEST(ProcessTest, DeathSignal_SpawningThreadEnds_ChildDies) {
  Pipe pipe = MakePipe().value();
  SpawnOptions options = Shell("exec sleep 1000");
  options.stdout_fd = pipe.write.get();
  absl::StatusOr<Process> process = absl::UnknownError("not spawned");
  std::thread([&] { process.emplace(Process::Spawn(options).value()); }).join();
  EXPECT_EQ(process->Wait().signal, SIGKILL);
}

// Limits this process to `more` more open files.
void AllowFiles(int more) {
  std::vector<Fd> taken;
  for (int i = 0; i <= more; ++i) taken.emplace_back(dup(STDERR_FILENO));
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(taken.back().get());
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Exits with 0 if a process that could not be watched has not run, and is gone.
[[noreturn]] void SpawnWithoutAFile() {
  std::string mark = testing::TempDir() + "/process_test_XXXXXX";
  close(mkstemp(mark.data()));
  AllowFiles(3);  // /dev/null, and a pipe for errors
  const absl::Status spawned = Process::Spawn(Shell("rm " + mark)).status();
  AllowFiles(0);
  const absl::Status forked = Process::Fork([] { return 0; }, SIGKILL).status();
  const bool has_run = unlink(mark.c_str()) != 0;
  if (waitpid(-1, nullptr, 0) >= 0 || errno != ECHILD) _exit(1);
  if (has_run) _exit(2);
  for (const absl::Status& status : {spawned, forked}) {
    if (!absl::StrContains(status.message(), "pidfd_open")) _exit(3);
  }
  _exit(0);
}

TEST(ProcessDeathTest, Spawn_NoFileForThePidfd_LeavesNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SpawnWithoutAFile(), ::testing::ExitedWithCode(0), "");
}

// Makes the kernel refuse a system call, from now on and in all children (seccomp).
void Refuse(int system_call, int error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(system_call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(rules), rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(9);
}

[[noreturn]] void SpawnWithoutPidfds(int error) {
  Refuse(SYS_pidfd_open, error);
  const absl::Status status = Process::Spawn(Shell("exit 0")).status();
  if (waitpid(-1, nullptr, 0) >= 0 || errno != ECHILD) _exit(1);
  _exit(absl::IsUnimplemented(status) && absl::StrContains(status.message(), "Linux 5.4") ? 0 : 2);
}

TEST(ProcessDeathTest, Spawn_KernelWithoutPidfds_SaysWhatIsNeeded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SpawnWithoutPidfds(ENOSYS), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(SpawnWithoutPidfds(EPERM), ::testing::ExitedWithCode(0), "");
}

// pidfd_open works for this process, but not for a child.
[[noreturn]] void SpawnWithoutPidfdsOfChildren() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(getpid()), 1, 0),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(rules), rules};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(9);
  const absl::Status status = Process::Spawn(Shell("sleep 1000")).status();
  if (waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD) _exit(1);
  _exit(status.ok() ? 2 : 0);
}

TEST(ProcessDeathTest, Spawn_ChildCantBeWatched_IsKilledAndReaped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(SpawnWithoutPidfdsOfChildren(), ::testing::ExitedWithCode(0), "");
}

TEST(ProcessTest, Spawn_OomScoreMore_IsAddedToThisProcessesOwn) {
  const std::string own = OutputOf(Shell("cat /proc/self/oom_score_adj"));
  SpawnOptions options = Shell("cat /proc/self/oom_score_adj");
  options.oom_score_more = 100;
  const int wanted = std::stoi(own) == -1000 ? -1000 : std::min(std::stoi(own) + 100, 1000);
  EXPECT_EQ(std::stoi(OutputOf(options)), wanted);
}

TEST(FindExecutableTest, FindExecutable_InPath_GivesFirst) {
  EXPECT_EQ(FindExecutable("sh", "/nonexistent:/bin:/usr/bin", "/").value(), "/bin/sh");
}

TEST(FindExecutableTest, FindExecutable_RelativePath_IsInDirectory) {
  EXPECT_EQ(FindExecutable("bin/sh", "", "/usr").value(), "/usr/bin/sh");
}

TEST(FindExecutableTest, FindExecutable_Missing_IsNotFound) {
  EXPECT_EQ(FindExecutable("no-such-command", "/bin", "/").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(FindExecutableTest, FindExecutable_NotExecutable_IsPermissionDenied) {
  EXPECT_EQ(FindExecutable("./passwd", "", "/etc").status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FindExecutable("/usr", "", "/").status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace hvd::os
