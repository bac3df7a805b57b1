// `braid plan` from flags to its table and its JSON.
#include <gmock/gmock.h>

#include "workplace.h"

namespace braid::plan_test {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Plan : public Workplace {
 protected:
  Finished plan(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "plan");
    return braid(std::move(arguments));
  }
  Json json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return Json::parse(plan(std::move(arguments)).out);
  }
};

TEST_F(Plan, ListsWhatFitsAndCountsWhatDoesNot) {
  const auto finished = plan({"-m", "flux1-dev", "--devices", "4xl20"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_THAT(finished.out, HasSubstr("flux1-dev, 1024x1024 (4096 image and 512 text tokens)"));
  EXPECT_THAT(finished.out, HasSubstr("4 l20 of 51.5 GB, pcie4"));
  EXPECT_THAT(plan({"-m", "flux1-dev", "--devices", "1xrtx-4090,2xrx-7600"}).out,
              HasSubstr("1 rtx-4090 of 25.8 GB, 2 rx-7600 of 8.59 GB, "));
  EXPECT_THAT(finished.out, HasSubstr("10 of 21 layouts fit"));
  EXPECT_THAT(finished.out, HasSubstr("6 are ruled out by branches, such as cfg 2"));
  EXPECT_THAT(finished.out, Not(HasSubstr("  dp 4:")));
  EXPECT_THAT(plan({"-m", "flux1-dev", "--devices", "4xl20", "--all"}).out,
              HasSubstr("\n  dp 4: dp 4 leaves a rank without a picture, there is 1\n"));
}

// 1600 tokens each, and one more item than layers; by default 4.
TEST_F(Plan, CountsTheLayersOfAPicture) {
  const auto planned = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-m", "qwen-image-layered", "--devices", "h200"});
    return json(more);
  };
  const auto four = planned({}), two = planned({"--layers", "2"}),
             twenty = planned({"--layers", "20"});
  EXPECT_EQ(four["image_tokens"], 5 * 1600);
  EXPECT_EQ(two["image_tokens"], 3 * 1600);
  EXPECT_EQ(twenty["image_tokens"], 21 * 1600);
  const auto of = [](const Json& plan, const char* key) {
    return plan.at("layouts").at(0).at(Json::json_pointer(key)).get<double>();
  };
  for (const auto* key : {"/seconds_per_picture", "/bytes/first_rank/activations"}) {
    EXPECT_LT(of(two, key), of(four, key)) << key;
    EXPECT_LT(2 * of(four, key), of(twenty, key)) << key;
  }
  const auto refused = plan({"-m", "qwen-image-layered", "--devices", "h200", "--layers", "21"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "braid: the number of layers should lie between 1 and 20, it is 21\n");
  const auto other = plan({"-m", "flux1-dev", "--devices", "h200", "--layers", "2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.err, "braid: this model draws no layers of a picture\n");
}

TEST_F(Plan, SaysWhenNothingFits) {
  const auto finished = plan({"-m", "flux1-dev", "--devices", "h100", "--memory", "8GB"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.out, HasSubstr("0 of 1 layout fits"));
  EXPECT_THAT(finished.out, HasSubstr("needs 34.9 GB, its device has 7.60 GB to use"));
}

TEST_F(Plan, RefusesProductsOfCodesWhereADeviceHasNone) {
  for (const auto* const flag : {"--quantize", "--quantize-text"}) {
    const auto refused =
        plan({"-m", "flux1-dev", "--devices", "h100,rx-7800-xt", flag, "int8-dynamic"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("no kernel on rx-7800-xt: int8 keeps the same codes"));
  }
  EXPECT_EQ(plan({"-m", "flux1-dev", "--devices", "h100", "--quantize", "int8-dynamic"}).exit_code,
            0);
  EXPECT_EQ(plan({"-m", "flux1-dev", "--devices", "rx-7900-xtx", "--quantize", "int8"}).exit_code,
            0);
}

// Codes that are widened before each product cost a pass that numbers do not; those that a device
// multiplies, and pages, of which fewer bytes are copied, do not.
TEST_F(Plan, SaysWhereCodesAreSlowerThanNumbers) {
  const auto said = [&](const char* device, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"-m", "flux1-dev", "--devices", device});
    return json(flags).value("slower_codes", "");
  };
  EXPECT_THAT(said("rtx-3090", {"--quantize", "fp8"}),
              HasSubstr("in fp8, are widened to bfloat16 before they multiply on rtx-3090"));
  EXPECT_EQ(said("rtx-4090", {"--quantize", "fp8"}), "");
  EXPECT_THAT(said("h100", {"--quantize", "int8"}), HasSubstr("int8-dynamic multiplies the codes"));
  EXPECT_THAT(said("rx-7800-xt", {"--quantize", "int8"}), Not(HasSubstr("int8-dynamic")));
  EXPECT_EQ(said("h100", {"--quantize", "int8-dynamic"}), "");
  EXPECT_EQ(said("h100", {}), "");
  EXPECT_EQ(said("h100", {"--quantize", "int8", "--offload", "block"}), "");
  EXPECT_THAT(plan({"-m", "flux1-dev", "--devices", "rtx-3090", "--quantize", "fp8"}).out,
              HasSubstr("\nNote: the transformer's weights, in fp8"));
}

// docs/parallelism.md has these figures.
TEST_F(Plan, SaysHowLongAStepOfAHopperTakes) {
  const auto milliseconds = [&](const char* device, const char* form) {
    const auto plan = json({"-m", "flux1-dev", "--devices", device, "--quantize", form});
    return 1e3 * plan.at("layouts").at(0).at("seconds_per_step").at("total").get<double>();
  };
  EXPECT_NEAR(milliseconds("h200", "none"), 121.6, 0.1);
  EXPECT_NEAR(milliseconds("h200", "fp8"), 85.4, 0.1);
  EXPECT_NEAR(milliseconds("h100", "none"), 123.4, 0.1);
  EXPECT_NEAR(milliseconds("h100", "fp8"), 88.4, 0.1);
}

// FLUX.2-dev has 64 GB of transformer and 33 GB of text encoder in bfloat16.
TEST_F(Plan, SaysHowFlux2DevFits) {
  const auto of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-m", "flux2-dev"});
    return plan(more);
  };
  EXPECT_EQ(of({"--devices", "2xh100"}).exit_code, 0);
  const auto cards = of({"--devices", "4xrtx-4090"});
  EXPECT_EQ(cards.exit_code, 1);
  EXPECT_THAT(cards.out,
              HasSubstr("It would fit with --text-encoder tp --quantize int8 --quantize-text int8 "
                        "(tp 4: "));
  EXPECT_THAT(cards.out, HasSubstr(",\n or with --text-encoder tp --offload block ("));
  EXPECT_THAT(cards.out, HasSubstr(" of host memory a rank)"));
  EXPECT_THAT(of({"--devices", "rtx-4090"}).out, HasSubstr("fit with --offload block (one rank: "));
  EXPECT_THAT(of({"--devices", "cpu", "--memory", "32GB"}).out,
              HasSubstr("fit with --offload block --offload-dir DIR (one rank: "));
}

TEST_F(Plan, TakesTheFlagsOfMemory) {
  const auto finished = plan({"-m", "flux2-dev", "--devices", "4xrtx-4090", "--quantize", "int8",
                              "--quantize-text", "int8", "--text-encoder", "tp"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out,
              HasSubstr("--text-encoder tp --quantize int8 --quantize-text int8\n4 rtx-4090"));
  EXPECT_THAT(finished.out, Not(HasSubstr("copies")));
  const auto paged =
      json({"-m", "flux1-dev", "--devices", "2xrtx-4090", "--offload", "block", "--prefetch", "0"});
  EXPECT_EQ(paged["flags"], "--offload block --prefetch 0");
  EXPECT_GT(paged["layouts"][0]["seconds_per_step"]["copies"], 0);
  const auto nothing = json({"-m", "flux1-dev", "--devices", "rtx-4090", "--memory", "4GB"});
  EXPECT_EQ(nothing["layouts"].size(), 0u);
  ASSERT_EQ(nothing["would_fit"].size(), 1u);
  EXPECT_EQ(nothing["would_fit"][0]["flags"], "--offload block");
  const auto coded = json({"-m", "qwen-image-2.1", "--devices", "cpu", "--memory", "12GB",
                           "--quantize", "int8-v1", "--quantize-text", "int8"});
  ASSERT_EQ(coded["would_fit"].size(), 1u) << "8 bits were asked for, and stay as they are";
  EXPECT_EQ(coded["would_fit"][0]["flags"],
            "--quantize int8-v1 --quantize-text int8 --offload block --offload-dir DIR");
  expect_bad_input({"plan", "--quantize", "auto"}, "give int8, another form or none here");
}

TEST_F(Plan, TakesShares) {
  const std::vector<std::string> cards = {
      "-m",         "flux1-dev", "--devices", "rtx-5090,rtx-4090",
      "--quantize", "int8",      "--shares",  "tp=3:2"};
  const auto finished = plan(cards);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(
      finished.out,
      HasSubstr("--shares tp=3:2 --quantize int8\n1 rtx-5090 of 34.4 GB, 1 rtx-4090 of 25.8 GB"));
  EXPECT_THAT(finished.out, HasSubstr("\n  tp 2 (3:2) "));
  EXPECT_THAT(finished.out, Not(HasSubstr("tp 2 (8:6)")));
  auto spaced = cards;
  spaced.back() = " tp = 3 : 2";
  EXPECT_EQ(plan(spaced).out, finished.out);
  const auto named = [](const Json& plan, const std::string& name) {
    for (const auto& layout : plan["layouts"])
      if (layout["layout"] == name) return layout;
    return Json();
  };
  const auto asked = json(cards);
  const auto given = named(asked, "tp 2 (3:2)");
  EXPECT_EQ(given["shares"], Json({{"tp", {3, 2}}}));
  // 14 and 10 of 24 heads; adaLN's outputs 3 to 2
  const auto bytes_of = [&](const char* rank) {
    return given["bytes"][rank]["transformer"].get<double>();
  };
  const auto times = bytes_of("first_rank") / bytes_of("largest_other");
  EXPECT_TRUE(times > 1.4 && times < 1.5) << times;
  EXPECT_GT(given["seconds_per_step"]["total"], 0);
  EXPECT_GT(given["step_traffic"]["tp"]["bytes"], 0);
  EXPECT_TRUE(named(asked, "ring 2 (8:6)").is_object()) << "other axes as without --shares";
  const auto by_speed = json({cards.begin(), cards.end() - 2});
  EXPECT_EQ(named(by_speed, "tp 2 (8:6)")["shares"], Json({{"tp", {8, 6}}}));
  EXPECT_FALSE(named(by_speed, "tp 2").contains("shares"));
}

// Every rank then reads and writes all of a sum, in one exchange less.
TEST_F(Plan, CountsNativeSums) {
  const auto step = [&](const char* whose) {
    const auto plan =
        json({"-m", "flux1-dev", "--devices", "2xh100", "--collectives", whose})["layouts"];
    for (const auto& layout : plan)
      if (layout["layout"] == "tp 2") return layout["seconds_per_step"];
    return Json();
  };
  const auto ordered = step("ordered"), native = step("native");
  EXPECT_GT(native["memory"], ordered["memory"]);
  EXPECT_LT(native["gaps"], ordered["gaps"]);
}

TEST_F(Plan, RefusesSharesOfNoLayout) {
  const auto refused = [&](const char* shares, const char* words) {
    expect_bad_input({"plan", "-m", "flux1-dev", "--devices", "2xl20", "--shares", shares}, words);
  };
  refused("tp=1:2:3", "--shares tp=1:2:3 suits no layout of 2 devices");
  refused("tp=1:2,ring=1:2", "--shares ring=1:2,tp=1:2 suits no layout of 2 devices");
  refused("auto", "plan lists shares by the speed of data sheets without it");
  refused("cfg=1:2", "--shares's axis should be one of dp, pp, ring, ulysses, tp");
  refused("tp=0:1", "a share in --shares tp=0:1 should be a whole number from 1 to 1000");
}

TEST_F(Plan, PrintsOneJsonObject) {
  const auto plan = json({"-m", "flux1-dev", "--devices", "2xh200", "--true-cfg", "4", "-n", "2",
                          "--size", "1008x1008", "--steps", "10", "--all"});
  EXPECT_EQ(plan["image_tokens"], 63 * 63);
  EXPECT_EQ(plan["branches"], 2);
  ASSERT_EQ(plan["layouts"].size(), 6u);
  for (const auto& layout : plan["layouts"]) {
    if (layout["layout"] != "tp 2") continue;
    EXPECT_TRUE(layout["fits"]);
    EXPECT_EQ(layout["degrees"]["tp"], 2);
    // two branches with 2 all_reduces per double block and 1 per single block
    EXPECT_EQ(layout["step_traffic"]["tp"]["all_reduces"], 2 * (2 * 19 + 38));
    const auto& seconds = layout["seconds_per_step"];
    EXPECT_NEAR(seconds["total"].get<double>(),
                seconds["compute"].get<double>() + seconds["memory"].get<double>() +
                    seconds["gaps"].get<double>() + seconds["communication"]["tp"].get<double>(),
                1e-9);
    EXPECT_NEAR(layout["seconds_per_picture"].get<double>(), 10 * seconds["total"].get<double>(),
                1e-9);
    EXPECT_GT(layout["bytes"]["first_rank"]["text_encoders"], 9e9);
    EXPECT_EQ(layout["bytes"]["largest_other"]["text_encoders"], 0);
    return;
  }
  FAIL() << "tp 2 is missing";
}

// Guidance that a model takes as an input is no branch; guidance against a prompt is.
TEST_F(Plan, CountsABranchForGuidanceThatIsTrue) {
  const auto branches = [&](const char* model, const char* guidance) {
    return json({"-m", model, "--devices", "h200", "--guidance", guidance})["branches"].get<int>();
  };
  EXPECT_EQ(branches("klein-base-4b", "4"), 2);
  EXPECT_EQ(branches("klein-base-4b", "1"), 1);
  EXPECT_EQ(branches("z-image", "5"), 2);
  EXPECT_EQ(branches("flux1-dev", "4"), 1);
}

TEST_F(Plan, RefusesTrueGuidanceBesideAModelsOwn) {
  for (const auto* const model : {"flux3-klein-base", "krea-2-raw", "qwen-image", "z-image"})
    expect_bad_input({"plan", "-m", model, "--devices", "h200", "--true-cfg", "3"},
                     "this model has no true guidance beside its own");
}

TEST_F(Plan, SaysWhenOneDeviceAloneIsFaster) {
  const std::vector<std::string> cards = {"-m",   "flux1-dev", "--quantize",
                                          "int8", "--devices", "h200,rtx-3060"};
  EXPECT_THAT(plan(cards).out, HasSubstr("\nNote: one h200 alone takes 3.51 s a picture, less than "
                                         "every layout of all devices\n"));
  EXPECT_EQ(json(cards)["faster_alone"]["device"], "h200");
  EXPECT_FALSE(json({"-m", "flux1-dev", "--devices", "2xh200"}).contains("faster_alone"));
}

TEST_F(Plan, ReadsTheSizesOfAModel) {
  const auto bundled = json({});
  EXPECT_EQ(bundled["model"], "demo");
  EXPECT_EQ(bundled["dtype"], "bfloat16");
  EXPECT_EQ(bundled["image_tokens"], 64);
  const auto report =
      Json::parse(draw({"a", "--json", "--tp", "2", "--ulysses", "2", "--dtype", "float32"}).out);
  const auto predicted =
      json({"--devices", "4xb200", "--size", "32x32", "--dtype", "float32", "--all"});
  Json traffic;
  for (const auto& layout : predicted["layouts"])
    if (layout["layout"] == "ulysses 2 x tp 2") traffic = layout["step_traffic"];
  EXPECT_EQ(traffic, report["step_traffic"]);
}

TEST_F(Plan, RefusesWhatItCannotRead) {
  expect_bad_input({"plan", "--devices", "4xgtx-970"}, "'gtx-970' is not known; known are cpu,");
  expect_bad_input({"plan", "--memory", "many"}, "--memory should be an amount of memory");
  expect_bad_input({"plan", "--link", "string"}, "--link should be one of pcie3, pcie4");
  expect_bad_input({"plan", "--devices-per-host", "0"}, "--devices-per-host should be");
  const std::pair<std::string, std::string> commands[] = {
      {"plan", "-m"}, {"bench", "--synthetic"}, {"verify", "--synthetic"}};
  for (const auto& [command, model] : commands)
    expect_bad_input({command, model, "flux3-klein", "--size", "70x70"},
                     "the width should be a multiple of 16, it is 70");
  expect_bad_input({"plan", "--true-cfg", "-1"}, "--true-cfg should be at least 0, it is -1");
  expect_bad_input({"plan", "-m", "flux2"}, "should be a path, flux1-dev, ");
  expect_bad_input({"plan", "--size", "8x8"}, "the width should lie between 16 and 16384, it is 8");
  expect_bad_input({"plan", "8xh200"}, "unexpected argument '8xh200'");
}

TEST_F(Plan, IsFastForAThousandDevices) {
  const auto finished = plan({"-m", "flux1-dev", "--devices", "1024xh100", "--devices-per-host",
                              "8", "--network", "50GB/s", "-n", "1024"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("of 3,003 layouts fit; the 20 fastest are shown"));
}

}  // namespace braid::plan_test
