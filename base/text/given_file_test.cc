#include "base/text/given_file.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "gtest/gtest.h"

namespace hvd::text {
namespace {

class GivenFileTest : public testing::Test {
 protected:
  ~GivenFileTest() override { std::remove(path_.c_str()); }

  absl::StatusOr<std::string> ReadAfterWriting(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return ReadGivenFile(path_, 1);
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/given_file_test_", getpid());
};

TEST_F(GivenFileTest, Read_GivesAllBytes_UpToTheLimit) {
  for (const std::string& text : {std::string(), std::string("a\0b\r\n", 5),
                                  std::string(100000, 'x'), std::string(1 << 20, 'y')}) {
    EXPECT_EQ(ReadAfterWriting(text).value(), text);
  }
  const absl::Status longer = ReadAfterWriting(std::string((1 << 20) + 1, 'z')).status();
  EXPECT_EQ(longer, absl::InvalidArgumentError("it is longer than 1 MiB"));
}

TEST_F(GivenFileTest, Read_DeviceWithoutAnEnd_EndsAtTheLimit) {
  EXPECT_EQ(ReadGivenFile("/dev/zero", 3).status(),
            absl::InvalidArgumentError("it is longer than 3 MiB"));
}

TEST_F(GivenFileTest, Read_Pipe_IsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd read_end(ends[0]);
  {
    const Fd write_end(ends[1]);
    ASSERT_EQ(write(write_end.get(), "abc", 3), 3);
  }
  EXPECT_EQ(ReadGivenFile(absl::StrCat("/proc/self/fd/", read_end.get()), 1).value(), "abc");
}

TEST_F(GivenFileTest, Read_NoFile_SaysWhy) {
  EXPECT_EQ(ReadGivenFile(path_, 1).status(), absl::NotFoundError("No such file or directory"));
  EXPECT_EQ(ReadGivenFile("/", 1).status(), absl::NotFoundError("Is a directory"));
}

}  // namespace
}  // namespace hvd::text
