#include "base/net/peer/peer_opening.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "gtest/gtest.h"

namespace hvd::net::peer {
namespace {

// The accepting end of a conversation: "name", "and?", "word". The peer's number is the length of
// what it has said.
class Conversation : public Handshake {
 public:
  std::string Start() override { return ""; }
  size_t wanted() const override { return said_.size() == 8 ? 0 : 4; }
  absl::StatusOr<std::string> Step(absl::string_view bytes) override {
    said_ += std::string(bytes);
    if (said_ != std::string("nameword").substr(0, said_.size()))
      return absl::PermissionDeniedError("nonsense");
    return said_.size() == 4 ? "and?" : "";
  }
  PeerId peer() const override { return {0, 0, static_cast<int>(said_.size())}; }

 private:
  std::string said_;
};

PeerOpening Accepting(int fd) {
  return PeerOpening(Wire(Fd(fd), nullptr, TlsEnd::kAccepts),
                     [](const std::string&) { return std::make_unique<Conversation>(); });
}

class PeerOpeningTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    mine_ = ends[0];
    other_ = Fd(ends[1]);
  }
  void Say(const std::string& words) {
    ASSERT_EQ(send(other_.get(), words.data(), words.size(), 0),
              static_cast<ssize_t>(words.size()));
  }

  int mine_ = -1;
  Fd other_;
};

// The handshake succeeds for any fragmentation of the bytes, and reads none beyond its end.
TEST_F(PeerOpeningTest, Advance_BytesOneByOne_TakesThemAndNoMore) {
  PeerOpening opening = Accepting(mine_);
  EXPECT_EQ(opening.Advance(), PeerOpening::Progress::kWantsToRead);
  EXPECT_EQ(opening.stage(), Strangers::Stage::kSilent);
  for (const char* letter : {"n", "a", "m", "e", "w", "o", "r"}) {
    Say(letter);
    ASSERT_EQ(opening.Advance(), PeerOpening::Progress::kWantsToRead);
    EXPECT_EQ(opening.stage(), Strangers::Stage::kHeard);
  }
  char answer[8];
  EXPECT_EQ(recv(other_.get(), answer, sizeof(answer), 0), 4);
  Say("ddata");
  ASSERT_EQ(opening.Advance(), PeerOpening::Progress::kProved);
  EXPECT_EQ(opening.peer().number, 8);
  const Wire wire = opening.TakeWire();
  EXPECT_EQ(recv(wire.fd(), answer, sizeof(answer), 0), 4) << "what follows the handshake";
}

TEST_F(PeerOpeningTest, Advance_WrongWord_IsTheHandshakesError) {
  PeerOpening opening = Accepting(mine_);
  Say("nome");
  EXPECT_EQ(opening.Advance(), PeerOpening::Progress::kFailed);
  EXPECT_EQ(opening.status(), absl::PermissionDeniedError("nonsense"));
}

TEST_F(PeerOpeningTest, Advance_EndOfTheStream_IsUnavailable) {
  PeerOpening opening = Accepting(mine_);
  other_.reset();
  EXPECT_EQ(opening.Advance(), PeerOpening::Progress::kFailed);
  EXPECT_EQ(opening.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(opening.Advance(), PeerOpening::Progress::kFailed);
}

TEST(PeerOpeningSocketTest, Connection_IsKeptAliveAndSendsAtOnce) {
  const PeerOpening opening = Accepting(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(opening.fd(), level, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE), 60) << "as long as the shortest memory of a NAT";
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1) << "the first message after TLS would wait 40 ms";
}

}  // namespace
}  // namespace hvd::net::peer
