#include "worker_runtime/control/control_messages.h"

#include "gtest/gtest.h"

namespace hvd::worker_runtime::control {
namespace {

std::string Text(size_t bytes) {
  std::string text(bytes, 'x');
  for (size_t i = 0; i < bytes; i += 1000) text[i] = static_cast<char>('a' + i / 1000 % 26);
  return text;
}

TEST(ControlMessagesTest, ComeBackAsTheyWere_WhateverTheirLength) {
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

TEST(ControlMessagesTest, InPieces_AreWholeAtTheLast) {
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
  MessageDecoder decoder(10);
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

TEST(ControlMessagesTest, EmptyFrame_IsRefused) {
  MessageDecoder decoder;
  decoder.Append(net::EncodeFrame(""));
  EXPECT_EQ(decoder.Next().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::worker_runtime::control
