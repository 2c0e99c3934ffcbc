#include "launcher/control.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "launcher/served_job_test_util.h"

namespace hvd::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ControlTest : public ServedJobFixture {
 protected:
  std::string Error() {
    const absl::Status status = Control(options_, directory_).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
    return std::string(status.message());
  }

  cli::ControlOptions options_;
};

TEST_F(ControlTest, Status_OnlyJobHere_IsShown) {
  const auto file = Register("4711abcdef");
  auto text = Control(options_, directory_);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->text, HasSubstr("job 4711abcdef: forming"));
  EXPECT_EQ(text->job_id, "4711abcdef");
  EXPECT_FALSE(text->is_over);
  options_.json = true;
  EXPECT_THAT(Control(options_, directory_)->text, StartsWith(R"({"job":"4711abcdef",)"));
}

TEST_F(ControlTest, Status_NoJob_SaysSo) {
  EXPECT_THAT(Error(), HasSubstr("you run no job on this machine"));
}

TEST_F(ControlTest, Status_SeveralJobs_AreListedAndOneCanBeChosen) {
  const auto first = Register("4711abcdef");
  const auto second = Register("4811abcdef");
  const auto list = Control(options_, directory_);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->text,
            "2 jobs run here; --job ID shows one of them\n\n"
            "4711abcd  pid 7  forming  python train.py\n"
            "4811abcd  pid 7  forming  python train.py\n");
  const std::string which =
      "several jobs run; which one? --job 4711abcd (pid 7: python train.py) or --job 4811abcd (pid "
      "7: python train.py)";
  options_.json = true;
  EXPECT_EQ(Error(), which);
  options_.json = false;
  options_.host = "a";
  for (const auto action :
       {cli::ControlOptions::Action::kDrain, cli::ControlOptions::Action::kStop}) {
    options_.action = action;
    EXPECT_EQ(Error(), which);
  }
  options_.action = cli::ControlOptions::Action::kStatus;
  options_.job = "48";
  EXPECT_TRUE(Control(options_, directory_).ok());
  options_.job = "49";
  EXPECT_EQ(Error(), "no job of yours that runs here has an id that begins with 49");
}

TEST_F(ControlTest, Status_ControlCharactersOfACommand_AreEscapedInTheList) {
  job_.set_command("python -c \x1b]0;title\x07\nprint\xc2\x9b");
  const auto first = Register("4711abcdef");
  const auto second = Register("4811abcdef");
  const auto list = Control(options_, directory_);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->text, HasSubstr(R"(  python -c \x1b]0;title\x07\nprint\xc2\x9b)"
                                    "\n4811abcd"));
}

TEST_F(ControlTest, Status_DeadAddress_NextOneIsTried) {
  job_.add_addresses(job_.addresses(0));
  job_.set_addresses(0, "127.0.0.1:1");
  const auto file = Register("4711abcdef");
  EXPECT_TRUE(Control(options_, directory_).ok());
  server_.reset();
  EXPECT_THAT(Error(), HasSubstr("can't be reached"));
}

TEST_F(ControlTest, Status_DaemonElsewhere_IsReachedByItsTokenFile) {
  options_.connect = {net::SplitHostPort(server_->addresses()[0])};
  options_.token_file = directory_ + "/token";
  EXPECT_THAT(Error(), HasSubstr("--token-file"));
  std::string text;
  google::protobuf::TextFormat::PrintToString(job_.credentials(), &text);
  std::ofstream(options_.token_file) << text;
  ASSERT_EQ(chmod(options_.token_file.c_str(), 0600), 0);
  EXPECT_TRUE(Control(options_, directory_).ok());
  const net::HostPort standby{"127.0.0.1", "1"};  // it does not listen
  const net::HostPort lost{"no.such.host.invalid", "1"};
  options_.connect = {lost, standby, options_.connect[0]};
  EXPECT_TRUE(Control(options_, directory_).ok());
  options_.connect = {lost};
  EXPECT_THAT(Error(), HasSubstr("no.such.host.invalid can't be resolved"));
}

TEST_F(ControlTest, Drain_StaticJob_SaysWhyNot) {
  const auto file = Register("4711abcdef");
  options_.action = cli::ControlOptions::Action::kDrain;
  options_.host = "b";
  EXPECT_THAT(Error(), HasSubstr("elastic"));
}

TEST_F(ControlTest, Stop_StaticJob_EndsIt) {
  const auto file = Register("4711abcdef");
  options_.action = cli::ControlOptions::Action::kStop;
  const auto answer = Control(options_, directory_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text,
            "job 4711abcdef ends: its workers get SIGTERM, and SIGKILL after 5s; its exit code is "
            "143\n");
  EXPECT_EQ(Control(options_, directory_)->text, "job 4711abcdef is over, or ends already\n");
  options_.now = true;
  EXPECT_EQ(Control(options_, directory_)->text,
            "job 4711abcdef is over, or ends already: what is left of it is killed\n");
  options_.action = cli::ControlOptions::Action::kStatus;
  EXPECT_TRUE(Control(options_, directory_)->is_over);
}

TEST_F(ControlTest, Stop_NoLocalJob_Succeeds) {
  options_.action = cli::ControlOptions::Action::kStop;
  EXPECT_THAT(Control(options_, directory_)->text, StartsWith("you run no job on this machine"));
  options_.action = cli::ControlOptions::Action::kDrain;
  EXPECT_THAT(Error(), StartsWith("you run no job on this machine"));
  options_.action = cli::ControlOptions::Action::kStop;
  options_.job = "49";
  EXPECT_THAT(Error(), StartsWith("no job of yours"));
}

TEST_F(ControlTest, Stop_RemoteDaemonHasEnded_Succeeds) {
  options_.action = cli::ControlOptions::Action::kStop;
  options_.connect = {net::SplitHostPort(server_->addresses()[0])};
  options_.token_file = directory_ + "/token";
  EXPECT_THAT(Error(), HasSubstr("can't be read"));  // somebody listens: the path may be wrong
  server_.reset();
  EXPECT_THAT(Control(options_, directory_)->text, StartsWith("the job has ended: nobody listens"));
  options_.action = cli::ControlOptions::Action::kStatus;
  EXPECT_THAT(Error(), StartsWith("the job has ended"));
  // A daemon that was killed leaves its token file, and may be started again.
  options_.action = cli::ControlOptions::Action::kStop;
  std::string text;
  google::protobuf::TextFormat::PrintToString(job_.credentials(), &text);
  std::ofstream(options_.token_file) << text;
  ASSERT_EQ(chmod(options_.token_file.c_str(), 0600), 0);
  EXPECT_THAT(Error(), HasSubstr("can't be reached"));
}

TEST_F(ControlTest, TokenOfAnotherJob_IsRefused) {
  job_.mutable_credentials()->set_token("of another job");
  const auto file = Register("4711abcdef");
  options_.action = cli::ControlOptions::Action::kStop;
  EXPECT_THAT(Error(), HasSubstr("token"));
  EXPECT_EQ(server_->Describe().state, rendezvous::lifecycle::JobState::kForming);
}

}  // namespace
}  // namespace hvd::launcher
