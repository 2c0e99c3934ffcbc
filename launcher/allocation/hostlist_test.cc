#include "launcher/allocation/hostlist.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::allocation {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* list;
  const char* hosts;
};

class ExpandHostlistTest : public testing::TestWithParam<Case> {};

TEST_P(ExpandHostlistTest, List_GivesNamesInSlurmsOrder) {
  const auto hosts = ExpandHostlist(GetParam().list);
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(absl::StrJoin(*hosts, " "), GetParam().hosts);
}

INSTANTIATE_TEST_SUITE_P(
    Lists, ExpandHostlistTest,
    testing::Values(
        Case{"", ""}, Case{"login1", "login1"},
        Case{"a[1-3,7],b[01-02]-ib", "a1 a2 a3 a7 b01-ib b02-ib"},
        Case{"r[1-2]n[01-03]", "r1n01 r1n02 r1n03 r2n01 r2n02 r2n03"},
        Case{"a[1-2]b[1-2]c[3-4]", "a1b1c3 a1b1c4 a2b1c3 a2b1c4 a1b2c3 a1b2c4 a2b2c3 a2b2c4"},
        Case{"a[9-10],a[09-10]", "a9 a10 a09 a10"}, Case{"a[098-100]", "a098 a099 a100"},
        Case{"a[001,1]", "a001 a1"}, Case{"a[1-2][3-4]", "a13 a14 a23 a24"}, Case{"[1-2]", "1 2"},
        Case{"a2,a1,a1", "a2 a1 a1"}, Case{"a,,b c\n", "a b c"}, Case{"x.y-z_0", "x.y-z_0"}));

TEST(ExpandHostlistErrorTest, BrokenEntry_IsNamedWithTheCause) {
  const Case cases[] = {{"ok,a[1-2", "'a[1-2'"},
                        {"a[1-2", "not closed"},
                        {"a]", "']'"},
                        {"a[2-1]", "'2-1'"},
                        {"a[]", "''"},
                        {"a[x]", "'x'"},
                        {"a[1,,2]", "''"},
                        {"a[-1]", "'-1'"},
                        {"a[1-2-3]", "'1-2-3'"},
                        {"a[[1]]", "'[1'"},
                        {"a;b", "';'"},
                        {"-o,a", "begins with a '-'"},
                        {"a[1-70000]", "too many"},
                        {"a[1-999]b[1-999]", "too many"},
                        {"a[1-99999999999999999999]", "neither"}};
  for (const Case& broken : cases) {
    const auto hosts = ExpandHostlist(broken.list);
    ASSERT_EQ(hosts.status().code(), absl::StatusCode::kInvalidArgument) << broken.list;
    EXPECT_THAT(std::string(hosts.status().message()), HasSubstr(broken.hosts)) << broken.list;
  }
}

}  // namespace
}  // namespace hvd::launcher::allocation
