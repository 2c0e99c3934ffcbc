#include "collectives/shm/byte_pipe.h"

#include <memory>
#include <string>
#include <thread>  // NOLINT: a writer and a reader
#include <vector>

#include "gtest/gtest.h"

namespace hvd::collectives::shm {
namespace {

class BytePipeTest : public testing::Test {
 protected:
  std::unique_ptr<segment::BytePipe> pipe_ = std::make_unique<segment::BytePipe>();
};

TEST_F(BytePipeTest, Write_TakesNoMoreThanThereIsRoomFor) {
  const std::string much(segment::kPipeBytes + 1, 'x');
  EXPECT_FALSE(HasData(*pipe_));
  EXPECT_EQ(WriteToPipe(*pipe_, much.data(), much.size()), segment::kPipeBytes);
  EXPECT_FALSE(HasRoom(*pipe_));
  EXPECT_EQ(WriteToPipe(*pipe_, "y", 1), 0u);
  char byte;
  EXPECT_EQ(ReadFromPipe(*pipe_, &byte, 1), 1u);
  EXPECT_TRUE(HasRoom(*pipe_));
  EXPECT_EQ(WriteToPipe(*pipe_, "yz", 2), 1u);
}

TEST_F(BytePipeTest, Read_EmptyPipe) {
  char byte;
  EXPECT_EQ(ReadFromPipe(*pipe_, &byte, 1), 0u);
}

TEST_F(BytePipeTest, Stream_ArrivesInOrder) {
  std::vector<char> sent(10 * segment::kPipeBytes + 123), received(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 1000);
  std::thread writer([&] {
    for (size_t at = 0; at < sent.size();) {
      at += WriteToPipe(*pipe_, sent.data() + at, std::min<size_t>(777, sent.size() - at));
    }
  });
  for (size_t at = 0; at < received.size();) {
    at += ReadFromPipe(*pipe_, received.data() + at, std::min<size_t>(1001, received.size() - at));
  }
  writer.join();
  EXPECT_EQ(sent, received);
}

}  // namespace
}  // namespace hvd::collectives::shm
