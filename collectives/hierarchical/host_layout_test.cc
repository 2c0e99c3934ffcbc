#include "collectives/hierarchical/host_layout.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::hierarchical {
namespace {

using testing::ElementsAre;

TEST(HostLayoutTest, LayOutHosts_EqualIdentities_ShareAHost) {
  const HostLayout layout = LayOutHosts({"a", "b", "a", "b", "b"}, 4);
  EXPECT_THAT(layout.hosts, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3, 4)));
  EXPECT_EQ(layout.host, 1);
  EXPECT_EQ(layout.index, 2);
  EXPECT_THAT(layout.members(), ElementsAre(1, 3, 4));
  EXPECT_EQ(layout.columns(), 2);
  EXPECT_THAT(layout.Column(1), ElementsAre(2, 3));
  EXPECT_FALSE(layout.IsContiguous());
  EXPECT_FALSE(layout.OneHost());
  EXPECT_FALSE(layout.AllApart());
}

TEST(HostLayoutTest, LayOutHosts_EmptyIdentities_ShareNothing) {
  const HostLayout layout = LayOutHosts({"", "", "a"}, 1);
  EXPECT_THAT(layout.hosts, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_EQ(layout.host, 1);
  EXPECT_TRUE(layout.AllApart());
}

TEST(HostLayoutTest, IsContiguous_HostByHost) {
  EXPECT_TRUE(LayOutHosts({"a", "a", "b", "b"}, 0).IsContiguous());
  EXPECT_TRUE(LayOutHosts({"a", "a", "", "b"}, 0).IsContiguous());
  EXPECT_FALSE(LayOutHosts({"a", "b", "b", "a"}, 0).IsContiguous());
  EXPECT_TRUE(LayOutHosts({"a", "a"}, 1).OneHost());
}

TEST(HostLayoutTest, HasEqualHosts_InAnyOrder) {
  EXPECT_TRUE(LayOutHosts({"a", "b", "b", "a"}, 0).HasEqualHosts());
  EXPECT_FALSE(LayOutHosts({"a", "a", "b"}, 0).HasEqualHosts());
}

}  // namespace
}  // namespace hvd::collectives::hierarchical
