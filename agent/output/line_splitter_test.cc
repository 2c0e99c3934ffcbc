#include "agent/output/line_splitter.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::agent::output {
namespace {

class LineSplitterTest : public testing::Test {
 protected:
  void Append(absl::string_view bytes) { splitter_.Append(bytes, take_); }
  void Finish() { splitter_.Finish(take_); }

  std::vector<std::string> lines_;
  LineSplitter::Take take_ = [this](absl::string_view line) { lines_.emplace_back(line); };
  LineSplitter splitter_;
};

using Lines = std::vector<std::string>;

TEST_F(LineSplitterTest, Append_SeveralEnds_CutsAfterEach) {
  Append("a\nb\r\nc\rd");
  EXPECT_EQ(lines_, (Lines{"a\n", "b\r\n", "c\r"}));
  Finish();
  EXPECT_EQ(lines_.back(), "d");
}

TEST_F(LineSplitterTest, Append_LineInPieces_GivesItOnce) {
  Append("he");
  Append("llo");
  EXPECT_TRUE(lines_.empty());
  Append("\n");
  EXPECT_EQ(lines_, Lines{"hello\n"});
}

TEST_F(LineSplitterTest, Append_CarriageReturnLast_IsShownAtOnce) {
  Append("50%\r");
  EXPECT_EQ(lines_, Lines{"50%\r"});
}

TEST_F(LineSplitterTest, Append_ZeroAndInvalidBytes_PassThrough) {
  Append(absl::string_view("\xff\0\xfe\n", 4));
  EXPECT_EQ(lines_, Lines{std::string("\xff\0\xfe\n", 4)});
}

TEST_F(LineSplitterTest, Append_VeryLongLine_IsCut) {
  const size_t max = LineSplitter::kMaxLineBytes;
  Append(std::string(max + 10, 'x'));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].size(), max);
  Append("\n");
  EXPECT_EQ(lines_[1], std::string(10, 'x') + "\n");
}

TEST_F(LineSplitterTest, Finish_AfterWholeLine_GivesNothing) {
  Append("a\n");
  Finish();
  EXPECT_EQ(lines_, Lines{"a\n"});
}

TEST_F(LineSplitterTest, Append_RandomPieces_NothingIsAddedOrLost) {
  std::mt19937 random(3);
  std::string sent;
  for (int i = 0; i < 2000; ++i) {
    std::string piece(random() % (i % 100 == 0 ? 100000 : 20), '\0');
    for (char& c : piece) c = "ab\n\r"[random() % 40 == 0 ? 2 + random() % 2 : random() % 2];
    sent += piece;
    Append(piece);
  }
  Finish();
  std::string got;
  for (const std::string& line : lines_) {
    EXPECT_LE(line.size(), LineSplitter::kMaxLineBytes + 1);
    got += line;
  }
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace hvd::agent::output
