#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "base/process_tree.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

SpawnOptions Shell(const std::string& script) {
  SpawnOptions options;
  options.file = "/bin/sh";
  options.argv = {"sh", "-c", script};
  return options;
}

// Everything until the last writer has closed it.
std::string ReadAll(Fd& fd) {
  std::string text;
  char buffer[4096];
  for (IoResult got; !(got = ReadSome(fd.get(), buffer, sizeof(buffer))).end;) {
    text.append(buffer, got.bytes);
  }
  return text;
}

// What the program writes to its stdout.
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
}  // namespace hvd
