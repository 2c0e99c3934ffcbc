#include "base/net/frames.h"

#include <random>
#include <string>
#include <vector>

#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::net {
namespace {

std::vector<std::string> DecodeAll(FrameDecoder& decoder) {
  std::vector<std::string> messages;
  for (;;) {
    absl::StatusOr<std::optional<std::string>> next = decoder.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) return messages;
    messages.push_back(**next);
  }
}

TEST(EncodeFrameTest, Length_MostSignificantByteFirst) {
  EXPECT_EQ(EncodeFrame(std::string(258, 'x')).substr(0, 5), std::string("\0\0\1\2x", 5));
}

TEST(FrameDecoderTest, Next_StreamCutAnywhere_GivesTheSameMessages) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> messages(random() % 8);
    std::string stream;
    for (std::string& message : messages) {
      message.assign(random() % 300, static_cast<char>(random()));
      stream += EncodeFrame(message);
    }
    FrameDecoder decoder(300);
    std::vector<std::string> decoded;
    for (size_t at = 0; at < stream.size();) {
      const size_t step = 1 + random() % 100;
      decoder.Append(absl::string_view(stream).substr(at, step));
      at += step;
      for (std::string& message : DecodeAll(decoder)) decoded.push_back(std::move(message));
    }
    EXPECT_EQ(decoded, messages);
    EXPECT_TRUE(decoder.empty());
  }
}

TEST(FrameDecoderTest, Next_RandomBytes_NeverGivesMoreThanTheBound) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    FrameDecoder decoder(64);
    std::string garbage(random() % 200, '\0');
    for (char& c : garbage) c = static_cast<char>(random() % 4 == 0 ? random() : 0);
    decoder.Append(garbage);
    absl::StatusOr<std::optional<std::string>> next = decoder.Next();
    while (next.ok() && next->has_value()) {
      EXPECT_LE((*next)->size(), 64u);
      next = decoder.Next();
    }
  }
}

TEST(FrameDecoderTest, Next_LongerThanBound_IsInvalidArgument) {
  FrameDecoder decoder(10);
  decoder.Append(EncodeFrame(std::string(11, 'x')).substr(0, 4));
  EXPECT_EQ(decoder.Next().status().code(), absl::StatusCode::kInvalidArgument);
}

class ReadFrameTest : public testing::Test {
 protected:
  // The result of ReadFrame for these bytes followed by the end of the stream.
  absl::StatusOr<std::string> ReadFrom(absl::string_view bytes) {
    Pipe pipe = MakePipe().value();
    EXPECT_TRUE(WriteAll(pipe.write.get(), bytes).ok());
    pipe.write.reset();
    return ReadFrame(pipe.read.get(), 100);
  }
};

TEST_F(ReadFrameTest, ReadFrame_WholeMessage_GivesIt) {
  EXPECT_EQ(ReadFrom(EncodeFrame("hello") + "rest").value(), "hello");
}

TEST_F(ReadFrameTest, ReadFrame_Nothing_IsOutOfRange) {
  EXPECT_EQ(ReadFrom("").status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ReadFrameTest, ReadFrame_CutAnywhere_IsDataLoss) {
  const std::string frame = EncodeFrame("hello");
  for (size_t length = 1; length < frame.size(); ++length) {
    EXPECT_EQ(ReadFrom(absl::string_view(frame).substr(0, length)).status().code(),
              absl::StatusCode::kDataLoss)
        << length;
  }
}

TEST_F(ReadFrameTest, ReadFrame_LongerThanBound_IsInvalidArgument) {
  EXPECT_EQ(ReadFrom(EncodeFrame(std::string(101, 'x'))).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hvd::net
