#include "rehearsal/campaign.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvd::rehearsal {
namespace {

absl::StatusOr<Campaign> Parse(absl::string_view faults) {
  return ParseCampaign(absl::StrCat("{\"seed\": 7, \"faults\": [", faults, "]}"), "c.json");
}

std::string ErrorOf(absl::string_view text) {
  return std::string(ParseCampaign(text, "c.json").status().message());
}

TEST(ParseCampaign, EachKindWithItsParameters) {
  const auto campaign = Parse(R"(
      {"kind": "kill", "at": {"step": 20}, "rank": 1},
      {"kind": "stop", "at": {"seconds": 2.5}, "seconds": 3},
      {"kind": "preemption", "at": {"random": [10, 60]}, "host": "b", "grace_seconds": 20},
      {"kind": "slow_rank", "at": {"step": 1}, "delay_ms": 5, "seconds": 1, "limit_seconds": 9})");
  ASSERT_TRUE(campaign.ok()) << campaign.status();
  ASSERT_EQ(campaign->faults.size(), 4U);
  EXPECT_EQ(campaign->faults[0].step, 20U);
  EXPECT_EQ(campaign->faults[0].rank, 1);
  EXPECT_EQ(campaign->faults[0].place, "c.json:2:7");
  EXPECT_EQ(campaign->faults[1].time, absl::Seconds(2.5));
  EXPECT_EQ(campaign->faults[1].lasts, absl::Seconds(3));
  EXPECT_TRUE(campaign->faults[2].is_random);
  EXPECT_GE(campaign->faults[2].time, absl::Seconds(10));
  EXPECT_LE(campaign->faults[2].time, absl::Seconds(60));
  EXPECT_EQ(campaign->faults[2].grace, absl::Seconds(20));
  EXPECT_EQ(campaign->faults[3].delay, absl::Milliseconds(5));
  EXPECT_EQ(campaign->faults[3].limit, absl::Seconds(9));
}

TEST(ParseCampaign, RandomTimesAreThoseOfTheSeed) {
  const auto time_of = [](absl::string_view seed) {
    return *ParseCampaign(
                absl::StrCat("{\"seed\": ", seed,
                             R"(, "faults": [{"kind": "kill", "at": {"random": [0, 60]}}]})"),
                "c.json")
                ->faults[0]
                .time;
  };
  EXPECT_EQ(time_of("1"), time_of("1"));
  EXPECT_NE(time_of("1"), time_of("2"));
}

TEST(ParseCampaign, MistakesHaveTheirPlace) {
  const std::string kill = R"({"kind": "kill", "at": {"step": 1}})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[", "c.json:1:2: the text ends"},
      {"[]", "c.json:1:1: a campaign must be an object"},
      {"{}", "c.json:1:1: \"faults\" is missing"},
      {R"({"faults": []})", "c.json:1:12: \"faults\" must be a list of at least one fault"},
      {R"({"faults": [3]})", "c.json:1:13: a fault must be an object"},
      {R"({"fault": []})", "c.json:1:2: there is no \"fault\" here, only seed, faults"},
      {R"({"seed": -1, "faults": []})", "c.json:1:10: \"seed\" must be a whole number, at least 0"},
      {R"({"faults": [{"at": {"step": 1}}]})", "c.json:1:13: \"kind\" is missing"},
      {R"({"faults": [{"kind": "kil", "at": {"step": 1}}]})",
       "c.json:1:22: 'kil' is no kind of fault; did you mean kill?"},
      {R"({"faults": [{"kind": "lost_daemon", "at": {"step": 1}}]})",
       "c.json:1:22: lost_daemon can't be rehearsed here: the daemon of this job"},
      {R"({"faults": [{"kind": "clock_step", "at": {"step": 1}}]})",
       "c.json:1:22: clock_step can't be rehearsed here: no deadline"},
      {R"({"faults": [{"kind": "kill"}]})", "c.json:1:13: \"at\" is missing: when?"},
      {R"({"faults": [{"kind": "kill", "at": 3}]})", "c.json:1:36: \"at\" must be"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 1, "seconds": 2}}]})",
       "c.json:1:36: \"at\" must be"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 0}}]})",
       "c.json:1:45: \"step\" must be a whole number, at least 1"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 1.5}}]})", "c.json:1:45: \"step\" must be"},
      {R"({"faults": [{"kind": "kill", "at": {"random": [1, 2]}}]})",
       "c.json:1:47: \"random\" needs a \"seed\""},
      {R"({"seed": 1, "faults": [{"kind": "kill", "at": {"random": [2, 1]}}]})",
       "c.json:1:58: \"random\" must have the earlier time first"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 1}, "rank": -1}]})",
       "c.json:1:57: \"rank\" must be a whole number, at least 0"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 1}, "rank": 0, "host": "a"}]})",
       "c.json:1:68: give \"rank\" or \"host\", not both"},
      {R"({"faults": [{"kind": "lost_host", "at": {"step": 1}, "rank": 0}]})",
       "c.json:1:54: there is no \"rank\" here"},
      {R"({"faults": [{"kind": "kill", "at": {"step": 1}, "seconds": 1}]})",
       "c.json:1:49: there is no \"seconds\" here"},
      {R"({"faults": [{"kind": "slow_rank", "at": {"step": 1}, "seconds": 1}]})",
       "c.json:1:13: slow_rank needs \"delay_ms\""},
      {R"({"faults": [{"kind": "full_disk", "at": {"step": 1}}]})",
       "c.json:1:13: full_disk needs \"seconds\""},
      {R"({"faults": [{"kind": "stop", "at": {"step": 1}, "seconds": 9}]})",
       "c.json:1:60: a worker that is stopped for longer"},
      {R"({"faults": [{"kind": "slow_rank", "at": {"step": 1}, "delay_ms": 0, "seconds": 1}]})",
       "c.json:1:66: \"delay_ms\" must be a number from 1 to 60000"},
      {absl::StrCat("{\"faults\": [", kill, ",]}"), "c.json:1:49: a value is expected"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_EQ(ErrorOf(text).substr(0, error.size()), error) << text;
  }
}

TEST(CheckCampaign, FaultsThatCanNotHappen) {
  const auto error = [](absl::string_view fault, const JobFacts& job) {
    const auto campaign = Parse(fault);
    EXPECT_TRUE(campaign.ok()) << campaign.status();
    return std::string(CheckCampaign(*campaign, job).message());
  };
  const JobFacts job = {{"a", "b"}, 4, settings::OnCorruption::kEnd};
  EXPECT_EQ(error(R"({"kind": "kill", "at": {"step": 1}, "rank": 3})", job), "");
  EXPECT_EQ(error(R"({"kind": "kill", "at": {"step": 1}, "rank": 4})", job),
            "c.json:1:24: kill of rank 4 can't happen: the job has 4 ranks at most");
  EXPECT_EQ(error(R"({"kind": "lost_host", "at": {"step": 1}, "host": "c"})", job),
            "c.json:1:24: lost_host of host 'c' can't happen: the job's hosts are a, b");
  EXPECT_EQ(error(R"({"kind": "cut_link", "at": {"step": 1}})",
                  {{"a"}, 4, settings::OnCorruption::kWarn}),
            "c.json:1:24: cut_link needs a job with two hosts or more");
  EXPECT_EQ(error(R"({"kind": "lost_host", "at": {"step": 1}, "host": "c"})",
                  {{}, 4, settings::OnCorruption::kWarn}),
            "")
      << "its hosts are found later";
  EXPECT_EQ(error(R"({"kind": "wrong_gradient_value", "at": {"step": 1}})", job),
            "c.json:1:24: wrong_gradient_value would end the job, as --on-corruption end says; "
            "rehearse it with evict");
}

TEST(Draw, ReachesAllNumbersAndNoOther) {
  std::set<uint64_t> drawn;
  for (uint64_t index = 0; index < 100; ++index) drawn.insert(Draw(1, index, 4));
  EXPECT_EQ(drawn, (std::set<uint64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace hvd::rehearsal
