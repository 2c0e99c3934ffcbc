#include "agent/attachment.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "gtest/gtest.h"
#include "rendezvous/transport/grpc_status.h"

namespace hvd::agent {
namespace {

// A clock that stands still unless the test advances it.
class StillClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition&, absl::Time) override {
    return false;
  }
  void Advance(absl::Duration duration) { now_ += duration; }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

// The test is the daemon; everything happens in its thread, and time passes only in Advance.
class AttachmentTest : public testing::Test {
 protected:
  class Link : public rendezvous::client::AgentLink {
   public:
    Link(std::vector<std::string>* log, size_t number) : log_(log), number_(number) {}
    ~Link() override { log_->push_back(absl::StrCat("gone ", number_)); }
    void Send(pb::AgentMessage message) override {
      log_->push_back(absl::StrCat("to ", number_, ": ", message.ShortDebugString()));
    }
    void Finish() override { log_->push_back(absl::StrCat("finish ", number_)); }

   private:
    std::vector<std::string>* const log_;
    const size_t number_;
  };

  AttachmentTest() {
    pb::AgentHello hello;
    hello.set_incarnation(77);
    attachment_.emplace(
        *loop_,
        [this](const pb::AgentHello& said, rendezvous::client::AgentLink::Callbacks callbacks) {
          log_.push_back("hello " + said.ShortDebugString());
          links_.push_back(std::move(callbacks));
          return std::make_unique<Link>(&log_, links_.size());
        },
        hello, kFirstPatience,
        Attachment::Callbacks{[this](const pb::AgentCommand& command) {
                                log_.push_back("command " + command.ShortDebugString());
                              },
                              [this] { return memory_; },
                              [this](const absl::Status& status) {
                                log_.push_back(absl::StrCat("detached ", status.message()));
                              },
                              [this](const absl::Status& status) {
                                log_.push_back(absl::StrCat("closed ",
                                                            absl::StatusCodeToString(status.code()),
                                                            " ", status.message()));
                              }});
  }

  // Runs everything that is due on the loop now.
  void Settle() {
    loop_->Post([this] { loop_->After(absl::ZeroDuration(), [this] { loop_->Stop(); }); });
    loop_->Run();
  }
  void Advance(absl::Duration duration) {
    clock_.Advance(duration);
    Settle();
  }
  void Welcome(size_t link, uint32_t reattach_ms) {
    pb::AgentCommand command;
    command.mutable_welcome()->set_reattach_ms(reattach_ms);
    links_[link - 1].on_command(command);
    Settle();
  }
  void Close(size_t link, const absl::Status& status) {
    links_[link - 1].on_closed(status);
    Settle();
  }
  std::vector<std::string> TakeLog() { return std::exchange(log_, {}); }
  static pb::AgentMessage Started(uint64_t id) {
    pb::AgentMessage message;
    message.mutable_started()->set_worker_id(id);
    return message;
  }

  static constexpr absl::Duration kFirstPatience = absl::Seconds(5);

  using Log = std::vector<std::string>;
  StillClock clock_;
  std::vector<std::string> log_;
  std::vector<rendezvous::client::AgentLink::Callbacks> links_;
  Attachment::Memory memory_;
  std::unique_ptr<EventLoop> loop_ = EventLoop::Create(clock_).value();
  std::optional<Attachment> attachment_;
};

const absl::Status kGone = absl::UnavailableError("gone");
const absl::Status kAnotherJob = rendezvous::transport::FromGrpcStatus(
    grpc::Status(grpc::StatusCode::UNAVAILABLE, "SSL routines: certificate verify failed"));

TEST_F(AttachmentTest, Closed_WithoutReattach_IsOver) {
  Welcome(1, 0);
  Close(1, kGone);
  EXPECT_EQ(TakeLog(),
            (Log{"hello incarnation: 77", "command welcome { }", "closed UNAVAILABLE gone"}));
}

TEST_F(AttachmentTest, NeverWelcomed_StreamBreaks_TriesAgain) {
  Close(1, kGone);
  EXPECT_EQ(TakeLog(), (Log{"hello incarnation: 77", "gone 1", "detached gone"}));
  Advance(absl::Milliseconds(50));
  Close(2, kGone);
  Advance(absl::Milliseconds(100));
  ASSERT_EQ(links_.size(), 3u);
  Welcome(3, 0);
  TakeLog();
  Advance(kFirstPatience);
  EXPECT_EQ(TakeLog(), Log{});
}

TEST_F(AttachmentTest, NeverWelcomed_StreamsKeepBreaking_IsOverInTime) {
  Close(1, kGone);
  Advance(absl::Milliseconds(50));
  TakeLog();
  Advance(kFirstPatience - absl::Milliseconds(51));
  EXPECT_EQ(TakeLog(), Log{});
  Advance(absl::Milliseconds(1));
  EXPECT_EQ(TakeLog(), Log{"closed UNAVAILABLE gone"});
}

TEST_F(AttachmentTest, NeverWelcomed_DaemonRefuses_IsOver) {
  Close(1, kGone);
  Advance(absl::Milliseconds(50));
  TakeLog();
  Close(2, absl::UnauthenticatedError("who"));
  EXPECT_EQ(TakeLog(), Log{"closed UNAUTHENTICATED who"});
}

TEST_F(AttachmentTest, NeverWelcomed_DaemonOfOtherJob_Ends) {
  Close(1, kAnotherJob);
  EXPECT_EQ(TakeLog().back(), absl::StrCat("closed UNAVAILABLE ", kAnotherJob.message()));
}

TEST_F(AttachmentTest, Lost_DaemonOfAnotherJobIsThere_TriesOn) {
  Welcome(1, 1000);
  Close(1, kGone);
  Advance(absl::Milliseconds(50));
  Close(2, kAnotherJob);
  Advance(absl::Milliseconds(100));
  EXPECT_EQ(links_.size(), 3u);
}

TEST_F(AttachmentTest, Closed_NeverWelcomed_IsOver) {
  Close(1, absl::AlreadyExistsError("host"));
  EXPECT_EQ(TakeLog(), (Log{"hello incarnation: 77", "closed ALREADY_EXISTS host"}));
}

TEST_F(AttachmentTest, Closed_InGoodOrderOrRefused_IsOver) {
  Welcome(1, 1000);
  TakeLog();
  Close(1, absl::OkStatus());
  EXPECT_EQ(TakeLog(), Log{"closed OK "});
}

TEST_F(AttachmentTest, Lost_DaemonComesBack_SaysItAgain) {
  Welcome(1, 1000);
  attachment_->Send(Started(4));
  TakeLog();
  memory_.known_workers = {4, 5};
  memory_.messages = {Started(5)};
  memory_.store_address = "10.0.0.2:1";
  memory_.commit_address = "10.0.0.2:2";
  Close(1, kGone);
  attachment_->Send(Started(6));  // no stream is open
  links_[0].on_command(pb::AgentCommand());
  EXPECT_EQ(TakeLog(), (Log{"gone 1", "detached gone"}));
  Advance(absl::Milliseconds(50));
  EXPECT_EQ(TakeLog(),
            (Log{"hello incarnation: 77 known_workers: 4 known_workers: 5 store_address: "
                 "\"10.0.0.2:1\" commit_address: \"10.0.0.2:2\"",
                 "to 2: started { worker_id: 5 }"}));
  Welcome(2, 1000);
  attachment_->Send(Started(7));
  Advance(absl::Seconds(2));
  EXPECT_EQ(TakeLog(),
            (Log{"command welcome { reattach_ms: 1000 }", "to 2: started { worker_id: 7 }"}));
}

TEST_F(AttachmentTest, Lost_AnotherAgentHasThePlace_IsOver) {
  Welcome(1, 1000);
  Close(1, kGone);
  Advance(absl::Milliseconds(50));
  TakeLog();
  Close(2, absl::AlreadyExistsError("host"));
  EXPECT_EQ(TakeLog(), Log{"closed ALREADY_EXISTS host"});
}

TEST_F(AttachmentTest, Lost_AnotherDaemonRefuses_IsOver) {
  Welcome(1, 1000);
  Close(1, kGone);
  Advance(absl::Milliseconds(50));
  TakeLog();
  Close(2, absl::UnauthenticatedError("who"));
  EXPECT_EQ(TakeLog(), Log{"closed UNAUTHENTICATED who"});
  Advance(absl::Seconds(2));
  EXPECT_EQ(TakeLog(), Log{});
}

TEST_F(AttachmentTest, Lost_DaemonStaysAway_IsOverInTime) {
  Welcome(1, 1000);
  Close(1, kGone);
  for (int waited = 0; waited < 950; waited += 50) {
    const size_t link = links_.size();
    Advance(absl::Milliseconds(50));
    if (links_.size() > link) Close(links_.size(), absl::UnavailableError("refused"));
  }
  EXPECT_GE(links_.size(), 4u);
  TakeLog();
  Advance(absl::Milliseconds(50));
  EXPECT_EQ(TakeLog().back(), "closed UNAVAILABLE gone");
  Advance(absl::Seconds(9));
  EXPECT_EQ(TakeLog(), Log{});
}

TEST_F(AttachmentTest, Finish_WhileDetached_IsOver) {
  Welcome(1, 1000);
  Close(1, kGone);
  TakeLog();
  attachment_->Finish();
  Settle();
  EXPECT_EQ(TakeLog(), Log{"closed UNAVAILABLE the daemon is away"});
}

TEST_F(AttachmentTest, Finish_StreamBreaksMeanwhile_IsOver) {
  Welcome(1, 1000);
  TakeLog();
  attachment_->Finish();
  Close(1, kGone);
  EXPECT_EQ(TakeLog(), (Log{"finish 1", "closed UNAVAILABLE gone"}));
}

}  // namespace
}  // namespace hvd::agent
