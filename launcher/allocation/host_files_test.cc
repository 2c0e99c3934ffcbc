#include "launcher/allocation/host_files.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::allocation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Error(const absl::StatusOr<HostCounts>& hosts) {
  EXPECT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(hosts.status().message());
}

TEST(HostFilesTest, RepeatedHosts_AreCountedInTheOrderOfTheirFirstLine) {
  EXPECT_THAT(ParseRepeatedHosts("b.site\nb.site\na\r\n\nb.site\n").value(),
              ElementsAre(Pair("b.site", 3), Pair("a", 1)));
  EXPECT_THAT(Error(ParseRepeatedHosts("\n \n")), HasSubstr("no host"));
  EXPECT_THAT(Error(ParseRepeatedHosts("a\n-oEvil\n")), HasSubstr("'-oEvil'"));
  EXPECT_THAT(Error(ParseRepeatedHosts("a;b")), HasSubstr("'a;b'"));
}

TEST(HostFilesTest, HostsAndCounts_AreRead) {
  EXPECT_THAT(ParseHostsAndCounts("hosta 2 hostb 1 ").value(),
              ElementsAre(Pair("hosta", 2), Pair("hostb", 1)));
  EXPECT_THAT(Error(ParseHostsAndCounts("hosta 2 hostb")), HasSubstr("no list of hosts"));
  EXPECT_THAT(Error(ParseHostsAndCounts("hosta two")), HasSubstr("'two'"));
  EXPECT_THAT(Error(ParseHostsAndCounts("hosta 0")), HasSubstr("'0'"));
  EXPECT_THAT(Error(ParseHostsAndCounts("")), HasSubstr("no host"));
}

TEST(HostFilesTest, PeHostfile_QueuesOfOneHostAreAdded) {
  EXPECT_THAT(ParsePeHostfile("node1 4 all.q@node1 UNDEFINED\nnode2 2 all.q@node2 <NULL>\n"
                              "node1 1 gpu.q@node1 0,0:0,1\n")
                  .value(),
              ElementsAre(Pair("node1", 5), Pair("node2", 2)));
  EXPECT_THAT(Error(ParsePeHostfile("node1\n")), HasSubstr("'node1' has no number of slots"));
  EXPECT_THAT(Error(ParsePeHostfile("node1 x all.q\n")), HasSubstr("'x'"));
}

}  // namespace
}  // namespace hvd::launcher::allocation
