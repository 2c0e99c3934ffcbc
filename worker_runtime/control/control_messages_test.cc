#include "worker_runtime/control/control_messages.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::worker_runtime::control {
namespace {

std::string Text(size_t bytes) {
  std::string text(bytes, 'x');
  for (size_t i = 0; i < bytes; i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
  return text;
}

TEST(ControlMessagesTest, AnyLength_RoundTrips) {
  MessageDecoder decoder;
  for (size_t bytes : {size_t{0}, size_t{1}, net::kMaxFrameBytes - 1, net::kMaxFrameBytes,
                       2 * net::kMaxFrameBytes - 2, 2 * net::kMaxFrameBytes + 77}) {
    const auto frames = EncodeMessage(Text(bytes));
    ASSERT_TRUE(frames.ok()) << frames.status();
    decoder.Append(*frames);
    auto message = decoder.Next();
    ASSERT_TRUE(message.ok() && message->has_value()) << bytes;
    EXPECT_TRUE(**message == Text(bytes)) << bytes;
    EXPECT_FALSE((*decoder.Next()).has_value());
  }
}

TEST(ControlMessagesTest, InPieces_IsCompleteAfterTheLast) {
  MessageDecoder decoder;
  const std::string frames = *EncodeMessage("abc") + *EncodeMessage("de");
  std::string got;
  for (char byte : frames) {
    decoder.Append(absl::string_view(&byte, 1));
    while (true) {
      const auto message = decoder.Next();
      ASSERT_TRUE(message.ok());
      if (!message->has_value()) break;
      got += **message + ".";
    }
  }
  EXPECT_EQ(got, "abc.de.");
}

TEST(ControlMessagesTest, TooLong_IsRefusedOnBothSides) {
  MessageDecoder decoder(nullptr, 10);
  const std::string more("\1abcd");  // says that more follows
  decoder.Append(net::EncodeFrame(more) + net::EncodeFrame(more));
  EXPECT_FALSE((*decoder.Next()).has_value());
  decoder.Append(net::EncodeFrame(more));
  EXPECT_EQ(
      decoder.Next().status(),
      absl::InvalidArgumentError("a control message of 12 bytes is too long: the limit is 10"));
  // The length is checked before the contents are read.
  EXPECT_EQ(EncodeMessage(absl::string_view("", kMostMessageBytes + 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

constexpr char kSecret[] = "the epoch's secret";

// What a decoder at rank 0 makes of bytes from rank 1: the messages, then an error's text.
std::vector<std::string> Decoded(absl::string_view bytes) {
  FrameSeal seal(kSecret, 1, 0);
  MessageDecoder decoder(&seal);
  decoder.Append(bytes);
  std::vector<std::string> got;
  while (true) {
    const auto message = decoder.Next();
    if (!message.ok()) got.push_back(std::string(message.status().message()));
    if (!message.ok() || !message->has_value()) return got;
    got.push_back(**message);
  }
}

TEST(ControlMessagesTest, Sealed_ComeBackAsTheyWere) {
  FrameSeal seal(kSecret, 1, 0);
  const std::string large = Text(net::kMaxFrameBytes + 5);
  const std::vector<std::string> messages = {"abc", "", large};
  std::string frames;
  for (const std::string& message : messages) frames += *EncodeMessage(message, &seal);
  EXPECT_TRUE(Decoded(frames) == messages);
}

TEST(ControlMessagesTest, ChangedOnTheWay_IsNoticed) {
  const std::vector<std::string> changed = {"a control message was changed on the way"};
  FrameSeal seal(kSecret, 1, 0);
  const std::string first = *EncodeMessage("abc", &seal);
  const std::string second = *EncodeMessage("de", &seal);
  for (size_t i = 4; i < first.size(); ++i) {  // 4: after the length
    std::string bytes = first;
    bytes[i] = static_cast<char>(bytes[i] ^ 1);
    EXPECT_EQ(Decoded(bytes), changed) << i;
  }
  EXPECT_EQ(Decoded(second), changed) << "the first is missing";
  EXPECT_EQ(Decoded(second + first), changed) << "in another order";
  EXPECT_EQ(Decoded(first + first), (std::vector<std::string>{"abc", changed[0]})) << "repeated";
  FrameSeal back(kSecret, 0, 1);
  EXPECT_EQ(Decoded(*EncodeMessage("abc", &back)), changed) << "of the other direction";
  FrameSeal other("another secret", 1, 0);
  EXPECT_EQ(Decoded(*EncodeMessage("abc", &other)), changed) << "of another world";
  EXPECT_EQ(Decoded(*EncodeMessage("abc")), changed) << "without a seal";
}

TEST(ControlMessagesTest, PartOfAMessage_IsIncomplete) {
  MessageDecoder decoder;
  const std::string frames = *EncodeMessage(Text(net::kMaxFrameBytes + 5));
  decoder.Append(frames.substr(0, 1));
  EXPECT_FALSE((*decoder.Next()).has_value());
  EXPECT_TRUE(decoder.has_part()) << "of a frame";
  const size_t one = net::kMaxFrameBytes + 4 - FrameSeal::kBytes;  // with its length
  decoder.Append(frames.substr(1, one - 1));
  EXPECT_FALSE((*decoder.Next()).has_value());
  EXPECT_TRUE(decoder.has_part()) << "one frame of two";
  decoder.Append(frames.substr(one));
  EXPECT_TRUE((*decoder.Next()).has_value());
  EXPECT_FALSE(decoder.has_part());
  EXPECT_EQ(decoder.frames(), 2u);
}

TEST(ControlMessagesTest, EmptyFrame_IsRefused) {
  MessageDecoder decoder;
  decoder.Append(net::EncodeFrame(""));
  EXPECT_EQ(decoder.Next().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::worker_runtime::control
