#include "agent/protocol/agent_frames.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/protocol/agent_protocol.h"
#include "gtest/gtest.h"

namespace hvd::agent::protocol {
namespace {

std::string OutputFrame(const std::string& line) {
  pb::AgentFrame frame;
  frame.mutable_output()->set_line(line);
  return EncodeAgentFrame(frame);
}

class AgentFrameReaderTest : public testing::Test {
 protected:
  absl::Status Append(absl::string_view bytes) {
    return stream_.Append(
        bytes, [this](pb::AgentFrame&& frame) { lines_.push_back(frame.output().line()); });
  }

  AgentFrameReader stream_;
  std::vector<std::string> lines_;
};

TEST_F(AgentFrameReaderTest, Append_GreetingBeforeMagicByteByByte_GivesFrames) {
  const std::string bytes =
      absl::StrCat("Welcome!\n\nHOROVOD-AGENT", kFrameMagic, OutputFrame("a\n"), OutputFrame("b"));
  for (const char byte : bytes) ASSERT_TRUE(Append({&byte, 1}).ok());
  EXPECT_EQ(lines_, (std::vector<std::string>{"a\n", "b"}));
  EXPECT_EQ(stream_.noise(), "");
}

TEST_F(AgentFrameReaderTest, Append_AllInOnePiece_GivesFrames) {
  ASSERT_TRUE(Append(absl::StrCat("hi", kFrameMagic, OutputFrame("a"), OutputFrame("b"))).ok());
  EXPECT_EQ(lines_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(AgentFrameReaderTest, Append_NoMagic_KeepsTheTextForTheUser) {
  ASSERT_TRUE(Append("This account is currently not available.\n").ok());
  EXPECT_EQ(stream_.noise(), "This account is currently not available.\n");
}

TEST_F(AgentFrameReaderTest, Append_EndlessNoise_IsInvalidArgument) {
  absl::Status status;
  for (int i = 0; i < 300 && status.ok(); ++i) status = Append(std::string(4096, 'y'));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stream_.noise().size(), TextTail::kMaxBytes);
}

TEST_F(AgentFrameReaderTest, EncodeAgentFrame_AnyFrame_EndsWithALineEnd) {
  EXPECT_EQ(OutputFrame("a").back(), '\n');
  EXPECT_EQ(OutputFrame("").back(), '\n');
}

TEST_F(AgentFrameReaderTest, Append_FrameWithoutLineEnd_IsInvalidArgument) {
  pb::AgentFrame frame;
  frame.mutable_output()->set_line("a");
  EXPECT_EQ(Append(absl::StrCat(kFrameMagic, net::EncodeFrame(frame.SerializeAsString()))).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AgentFrameReaderTest, Append_BrokenFrame_IsInvalidArgument) {
  EXPECT_EQ(Append(absl::StrCat(kFrameMagic, net::EncodeFrame("\xff\xff\xff\n"))).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(AgentFrameReaderTest, Append_TextInsteadOfFrames_IsInvalidArgument) {
  EXPECT_EQ(Append(absl::StrCat(kFrameMagic, "Segmentation fault\n")).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::agent::protocol
