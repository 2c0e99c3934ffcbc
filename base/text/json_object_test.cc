#include "base/text/json_object.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::text {
namespace {

TEST(JsonObjectTest, Empty) { EXPECT_EQ(JsonObject().Text(), "{}"); }

TEST(JsonObjectTest, EveryKindOfMember_InTheOrderOfTheCalls) {
  JsonObject object;
  object.AddText("b", "say \"yes\"\n")
      .AddBool("a", true)
      .AddNull("none")
      .AddNumber("largest", std::numeric_limits<uint64_t>::max())
      .AddNumber("negative", -1)
      .AddNumber("part", 1.5)
      .AddNumber("there", std::optional<double>(2))
      .AddNumber("absent", std::optional<double>())
      .AddTime("time", absl::UnixEpoch())
      .AddObject("object", JsonObject().AddNumber("x", 1));
  EXPECT_EQ(object.Text(),
            R"({"b":"say \"yes\"\u000a","a":true,"none":null,"largest":18446744073709551615,)"
            R"("negative":-1,"part":1.5,"there":2,"absent":null,)"
            R"("time":"1970-01-01T00:00:00.000000Z","object":{"x":1}})");
}

TEST(JsonObjectTest, Lists_OfObjectsAndOfTexts) {
  JsonObject object;
  object.AddList("empty", std::vector<int>(), [](int) { return JsonObject(); })
      .AddList("objects", std::vector<int>{1, 2},
               [](int number) { return JsonObject().AddNumber("n", number); })
      .AddList("texts", std::vector<std::string>{"a", "\""}, JsonString);
  EXPECT_EQ(object.Text(), R"({"empty":[],"objects":[{"n":1},{"n":2}],"texts":["a","\""]})");
}

}  // namespace
}  // namespace hvd::text
