#include "launcher/discovery/hostfile.h"

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::discovery {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Error(absl::string_view text) {
  auto hosts = ParseHostfile(text, "hosts.txt");
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(hosts.status().message());
}

TEST(ParseHostfile, TakesBothFormsCommentsAndBlankLines) {
  auto hosts = ParseHostfile("# ours\n\nb slots=2 # fast\r\n  a:3\n\t\nc\tslots=1", "f");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[0].host, "b");
  EXPECT_EQ((*hosts)[0].slots, 2);
  EXPECT_EQ((*hosts)[1].host, "a");
  EXPECT_EQ((*hosts)[1].slots, 3);
  EXPECT_EQ((*hosts)[2].host, "c");
}

TEST(ParseHostfile, TakesAByteOrderMark) {
  auto hosts = ParseHostfile(
      "\xEF\xBB\xBF"
      "a slots=2\r\n",
      "f");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].host, "a");
}

TEST(ParseHostfile, BrokenLineIsNamedByFileAndNumber) {
  EXPECT_THAT(Error("a slots=1\n\nb slots=x\n"), StartsWith("hosts.txt:3: host b: 'x'"));
  EXPECT_THAT(Error("a slots=0"), StartsWith("hosts.txt:1: host a: 0 slots"));
  EXPECT_THAT(Error("a slots="), StartsWith("hosts.txt:1: "));
  EXPECT_THAT(Error("a slot=2"), StartsWith("hosts.txt:1: 'a slot=2' is not of the form"));
  EXPECT_THAT(Error("a slots=2 max=3"), StartsWith("hosts.txt:1: "));
  EXPECT_THAT(Error("a"), StartsWith("hosts.txt:1: 'a' names no number of slots"));
}

TEST(ParseHostfile, DuplicateHostNamesBothLines) {
  EXPECT_EQ(Error("a slots=1\nb slots=1\na:2"),
            "hosts.txt:3: host a is listed twice, first in line 1");
}

TEST(ParseHostfile, FileWithoutHostsIsRefused) {
  EXPECT_EQ(Error("# nothing\n\n"), "hosts.txt: lists no host");
}

TEST(ReadHostfile, MissingFileAndDirectorySayWhy) {
  auto missing = ReadHostfile("/nonexistent/hosts");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "can't read host file /nonexistent/hosts: No such file or directory");
  EXPECT_EQ(ReadHostfile("a:2,b:2").status().message(),
            "can't read host file a:2,b:2: No such file or directory; for a list of hosts use -H");
  EXPECT_THAT(std::string(ReadHostfile("/").status().message()), HasSubstr("directory"));
  EXPECT_EQ(ReadHostfile("/dev/zero").status().message(),
            "can't read host file /dev/zero: it is longer than 64 MiB");
}

TEST(ReadHostfile, ReadsAFile) {
  const std::string file = ::testing::TempDir() + "/hostfile_test_hosts";
  std::ofstream(file) << "a slots=2\n";
  auto hosts = ReadHostfile(file);
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].slots, 2);
  std::ofstream(file, std::ios::trunc).close();
  EXPECT_THAT(std::string(ReadHostfile(file).status().message()), HasSubstr("lists no host"));
  std::remove(file.c_str());
}

TEST(ParseHostfile, WildText_IsQuotedInAShortLine) {
  std::string text("a\0b\033[2J", 7);
  for (const std::string& line :
       {text, std::string(100000, 'x'), text + " slots=1", std::string(100000, 'x') + " slots=1"}) {
    const absl::Status status = ParseHostfile(line, "hosts").status();
    EXPECT_FALSE(status.ok());
    EXPECT_LT(status.message().size(), 400u);
    EXPECT_EQ(status.message().find('\0'), absl::string_view::npos);
    EXPECT_EQ(status.message().find('\033'), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace hvd::launcher::discovery
