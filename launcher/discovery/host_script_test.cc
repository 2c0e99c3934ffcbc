#include "launcher/discovery/host_script.h"

#include <sys/stat.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using ::testing::HasSubstr;
using Hosts = absl::StatusOr<std::vector<rendezvous::membership::HostSlots>>;

class HostScriptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/host script.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    options_.path = directory_ + "/hosts $HOME.sh";
    options_.pause = absl::Milliseconds(1);
  }
  void TearDown() override {
    script_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Write(const std::string& text) {
    const std::string fresh = directory_ + "/new";
    std::ofstream(fresh) << text;
    chmod(fresh.c_str(), 0755);
    std::filesystem::rename(fresh, options_.path);
  }
  void Start() {
    auto script = HostScript::Start(options_, [this](Hosts hosts) {
      absl::MutexLock lock(&mutex_);
      results_.push_back(std::move(hosts));
    });
    ASSERT_TRUE(script.ok()) << script.status();
    script_ = *std::move(script);
  }
  Hosts Next() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::deque<Hosts>* results) { return !results->empty(); }, &results_));
    Hosts result = std::move(results_.front());
    results_.pop_front();
    return result;
  }
  std::string NextError(absl::StatusCode code = absl::StatusCode::kFailedPrecondition) {
    const Hosts hosts = Next();
    EXPECT_EQ(hosts.status().code(), code);
    const std::string message(hosts.status().message());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }

  std::string directory_;
  HostScriptOptions options_;
  absl::Mutex mutex_;
  std::deque<Hosts> results_;
  std::unique_ptr<HostScript> script_;
};

TEST_F(HostScriptTest, Start_RunsAgainAndAgain) {
  Write(
      "#!/bin/sh\necho x >> \"$(dirname \"$0\")/runs\"\necho a:$(wc -l < \"$(dirname "
      "\"$0\")/runs\")\n");
  Start();
  for (int run = 1; run <= 3; ++run) {
    const Hosts hosts = Next();
    ASSERT_TRUE(hosts.ok()) << hosts.status();
    ASSERT_EQ(hosts->size(), 1u);
    EXPECT_EQ((*hosts)[0].host, "a");
    EXPECT_EQ((*hosts)[0].slots, run);
  }
}

TEST_F(HostScriptTest, Start_ScriptWithoutInterpreterLine_IsRunByTheShell) {
  Write("echo a\n");
  options_.slots_per_host = 2;
  Start();
  const Hosts hosts = Next();
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].slots, 2);
}

TEST_F(HostScriptTest, Start_FailingScript_SaysCodeAndWhatItSaid) {
  Write("#!/bin/sh\necho a:1\necho no cloud >&2\necho today >&2\nexit 3\n");
  Start();
  EXPECT_EQ(NextError(), "the host discovery script " + options_.path +
                             " failed with exit code 3: no cloud | today");
}

TEST_F(HostScriptTest, Start_Rubbish_IsNamed) {
  Write("#!/bin/sh\necho a:1\necho b:x\n");
  Start();
  EXPECT_THAT(NextError(absl::StatusCode::kInvalidArgument),
              HasSubstr("printed no list of hosts: line 2: host b: 'x'"));
}

TEST_F(HostScriptTest, Start_MissingScript_IsAFailure) {
  Start();
  EXPECT_THAT(NextError(), HasSubstr("failed with exit code 127: "));
}

TEST_F(HostScriptTest, Start_ScriptRecovers_IsToldAgain) {
  Write("exit 1\n");
  Start();
  EXPECT_FALSE(Next().ok());
  Write("echo a:1\n");
  Hosts hosts = Next();
  while (!hosts.ok()) hosts = Next();
  EXPECT_EQ(hosts->size(), 1u);
}

TEST_F(HostScriptTest, Start_ScriptThatHangs_IsKilledWithItsChildren) {
  // The child holds the pipe open: only with it gone the run could end.
  Write("#!/bin/sh\nsleep 1000 &\nwait\n");
  options_.time_limit = absl::Milliseconds(50);
  Start();
  EXPECT_THAT(NextError(absl::StatusCode::kDeadlineExceeded),
              HasSubstr("has not ended within 50ms and was killed"));
}

TEST_F(HostScriptTest, Destructor_ScriptThatHangs_KillsIt) {
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Write("#!/bin/sh\nexec 3> \"$(dirname \"$0\")/fifo\"\necho running >&3\nsleep 1000\n");
  Start();
  std::ifstream running(fifo);
  std::string line;
  ASSERT_TRUE(std::getline(running, line));
  script_.reset();
  EXPECT_FALSE(std::getline(running, line));  // the end, once nobody can write any more
}

}  // namespace
}  // namespace hvd::launcher::discovery
