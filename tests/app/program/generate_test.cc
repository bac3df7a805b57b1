// `braid generate` from flags to files, its report, and what the files say of themselves.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/sha256.h"
#include "has_match.h"
#include "image/png.h"
#include "workplace.h"

namespace braid::generate_test {

using Json = nlohmann::json;
using testing::AllOf, testing::HasSubstr;

class Generate : public Workplace {
 protected:
  Json report(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const auto finished = draw(std::move(arguments));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return Json::parse(finished.out);
  }
  std::string bytes(const std::string& name) const { return read_file(folder_ / name); }
};

// The mean of the square of `size` pixels with its first pixel at (x, y).
std::array<int, 3> mean_color(const Pixels& image, int x, int y, int size) {
  std::array<int, 3> sum{};
  for (int row = y; row < y + size; ++row)
    for (int column = x; column < x + size; ++column)
      for (int c = 0; c < 3; ++c)
        sum[std::size_t(c)] += image.rgb[std::size_t((row * image.width + column) * 3 + c)];
  for (auto& value : sum) value /= size * size;
  return sum;
}

TEST_F(Generate, DrawsWhatWasAskedFor) {
  const auto finished = Subprocess({.arguments = {"generate", "a red circle on a blue background"},
                                    .folder = folder_,
                                    .from_shell = true})
                            .finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "braid.png\n");
  const auto image = decode_png(bytes("braid.png"), "braid.png");
  ASSERT_EQ(image.width, 128);
  ASSERT_EQ(image.height, 128);
  const auto [r, g, b] = mean_color(image, 56, 56, 16);
  EXPECT_GT(r, 150);
  EXPECT_LT(g + b, 150);
  for (const int corner : {0, 112}) {
    const auto [cr, cg, cb] = mean_color(image, corner, corner, 16);
    EXPECT_GT(cb, 130);
    EXPECT_GT(cb, cr + 50);
  }
}

using SlowGenerate = Generate;

// All ranks of one CPU are alike, whatever was measured: the picture is the same.
TEST_F(SlowGenerate, MeasuresSharesOnceAndRecordsThem) {
  const auto drawn = [&](const std::string& name, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"generate", "a", "--size", "64x64", "--steps", "1", "-o", name});
    const auto finished =
        Subprocess({.arguments = std::move(arguments),
                    .environment = {"XDG_CACHE_HOME=" + (folder_ / "caches").string()},
                    .folder = folder_})
            .finish();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished;
  };
  const std::vector<std::string> automatic = {"--tp", "2", "--shares", "auto"};
  EXPECT_THAT(drawn("auto.png", automatic).err, HasSubstr("shares by measured speed: alike"));
  const auto kept = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "caches/braid/speeds"))
      files[entry.path().filename()] = read_file(entry.path());
    return files;
  };
  const auto first = kept();
  ASSERT_EQ(first.size(), 1u);
  const auto report =
      Json::parse(drawn("again.png", {"--tp", "2", "--shares", "auto", "--json"}).out);
  EXPECT_EQ(kept(), first);
  const auto flops = Json::parse(first.begin()->second)["flops"];
  EXPECT_EQ(report["measured_flops"], Json({flops, flops}));
  EXPECT_EQ(report["shares"], Json::object());
  (void)drawn("alike.png", {"--tp", "2"});
  EXPECT_EQ(bytes("auto.png"), bytes("alike.png"));
  const auto given =
      Json::parse(drawn("given.png", {"--tp", "2", "--shares", "tp=3:1", "--json"}).out);
  EXPECT_EQ(given["shares"], Json({{"tp", {3, 1}}}));
  EXPECT_EQ(given["collectives"], "ordered");
  EXPECT_THAT(braid({"info", "given.png"}).out, AllOf(HasSubstr("tp=3:1"), HasSubstr("tp ")));
  EXPECT_THAT(braid({"info", "alike.png"}).out, testing::Not(HasSubstr("shares")));
}

// What draws another picture stands in it.
TEST_F(Generate, RecordsInWhatNumbersAPictureWasDrawn) {
  draw({"a",
        "--size",
        "64x64",
        "--steps",
        "2",
        "--tp",
        "5",
        "--dtype",
        "float32",
        "--quantize",
        "int8",
        "--quantize-text",
        "fp8",
        "--quantize-skip",
        "img_in",
        "--cache",
        "accumulated:0.5",
        "--cache-limit",
        "1",
        "--cache-polynomial",
        "2,0",
        "-o",
        "drawn.png"});
  const auto said = braid({"info", "drawn.png"}).out;
  for (const auto* const words :
       {"dtype", "float32", "quantize", "int8", "quantize_text", "fp8", "quantize_skip", "img_in",
        "cache_limit", "cache_polynomial", "2,0"})
    EXPECT_THAT(said, HasSubstr(words));
  EXPECT_THAT(said, testing::Not(HasSubstr("\ntp"))) << "which changes it by rounding alone";
}

// There is nothing to sum.
TEST_F(Generate, TakesNativeCollectivesForOneRank) {
  const auto finished = draw({"a", "--steps", "1", "--collectives", "native", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(Json::parse(finished.out)["collectives"], "ordered");
}

TEST_F(Generate, TellsProgressInAFewLinesAndNothingWhenQuiet) {
  const auto finished = draw({"a", "--steps", "20"});
  EXPECT_THAT(finished.err, HasMatch("^load +.* MB \\.\\.\\.\n"
                                     "load +.* MB in .* s, .*/s\n"
                                     "text +1 prompt in .* s\n"
                                     "denoise +20 steps \\.\\.\\.\n"
                                     "denoise +20 steps in .* s, .* s/it\n"
                                     "decode +1 picture in .* s\n$"));
  const auto quiet = draw({"a", "-q", "--size", "33x32"});
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.out, "braid.png\n");
}

TEST_F(Generate, WarnsOfRoundedSizesAndUnusedPrompts) {
  const auto finished = draw({"a", "--size", "40x47", "--negative-prompt", "b"});
  EXPECT_THAT(finished.err, HasSubstr("braid: warning: the width 40 is rounded down to 32"));
  EXPECT_THAT(finished.err, HasSubstr("braid: warning: the height 47 is rounded down to 32"));
  EXPECT_THAT(finished.err, HasSubstr("braid: warning: the negative prompt is not used"));
}

TEST_F(Generate, TheSameCommandGivesTheSameBytes) {
  draw({"a", "-o", "1.png"});
  draw({"a", "-o", "2.png"});
  draw({"a", "-o", "3.png", "--seed", "1"});
  EXPECT_EQ(bytes("1.png"), bytes("2.png"));
  EXPECT_NE(bytes("1.png"), bytes("3.png"));
}

TEST_F(Generate, PictureKOfManyIsTheOneOfSeedPlusK) {
  draw({"a", "-n", "2", "--seed", "18446744073709551615", "-o", "many.png"});  // seeds wrap around
  draw({"a", "--seed", "0", "-o", "one.png"});
  EXPECT_EQ(decode_png(bytes("many-001.png"), "").rgb, decode_png(bytes("one.png"), "").rgb);
}

TEST_F(Generate, ReportsOneJsonObject) {
  const auto json = report({"caf\xc3\xa9", "-n", "2", "--seed", "5", "-o", "x.png", "--dtype",
                            "float32", "--threads", "1", "--size", "40x32"});
  EXPECT_EQ(json["files"][1],
            (Json{{"path", "x-001.png"}, {"prompt", "caf\xc3\xa9"}, {"seed", 6}}));
  EXPECT_EQ(json["size"], (Json{{"width", 32}, {"height", 32}}));
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["guidance"], 3.5);
  EXPECT_EQ(json["dtype"], "float32");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["warnings"].size(), 1u);
}

TEST_F(Generate, ReportsTimeAndMemoryOfEachPhase) {
  const auto json = report({"a"});
  double sum = 0;
  for (const auto* const phase : {"load", "text", "denoise", "decode"}) {
    EXPECT_GT(json["seconds"][phase].get<double>(), 0) << phase;
    EXPECT_GT(json["peak_memory_bytes"][phase].get<double>(), 50e6) << phase;
    sum += json["seconds"][phase].get<double>();
  }
  EXPECT_LE(sum, json["seconds"]["total"].get<double>());
  EXPECT_GT(json["seconds"]["startup"].get<double>(), 0);
  EXPECT_GT(json["seconds_per_step"].get<double>(), 0);
}

TEST_F(Generate, TwoDevicesTakeTheBranchesOfGuidance) {
  std::vector<std::string> arguments = {"a", "--negative-prompt=b", "--true-cfg=2",
                                        "--dtype=float32"};
  const auto alone = report(arguments);
  arguments.insert(arguments.end(), {"--devices", "cpu,cpu", "-o", "two.png"});
  const auto shared = report(arguments);
  EXPECT_THAT(alone["layout"].get<std::string>(), HasSubstr("cfg 1"));
  EXPECT_THAT(shared["layout"].get<std::string>(), HasSubstr("cfg 2"));
  EXPECT_EQ(shared["device"], "cpu,cpu");
  const auto bytes_of = [&](const char* name) { return read_file(folder_ / name, 1 << 20); };
  EXPECT_EQ(bytes_of("two.png"), bytes_of("braid.png"));
}

TEST_F(Generate, ReportsWhatRanksGiveEachOtherAndReadOfFiles) {
  const auto json = report({"a", "--tp", "2", "--ring", "2", "--dtype", "float32"});
  // two double and six single blocks; adaLN layers are gathered before the first step
  EXPECT_EQ(json["step_traffic"]["tp"]["all_reduces"], 2 * 2 + 6);
  EXPECT_FALSE(json["step_traffic"]["tp"].contains("all_gathers"));
  EXPECT_EQ(json["step_traffic"]["ring"]["shifts"], 2 + 6);
  // for 32 x 32 pixels each rank of the ring has two image tokens of 64 values
  EXPECT_EQ(json["step_traffic"]["context"], (Json{{"all_gathers", 1}, {"bytes", 4 * 2 * 64}}));
  EXPECT_FALSE(json["step_traffic"].contains("ulysses"));
  ASSERT_EQ(json["bytes_read"].size(), 4u);
  EXPECT_EQ(json["bytes_read"][1], json["bytes_read"][3]);  // both have the second half
  EXPECT_GT(json["bytes_read"][0]["all"], json["bytes_read"][1]["all"]);  // and the text encoders
  EXPECT_EQ(json["bytes_read"][0]["strided"], json["bytes_read"][1]["strided"]);
  EXPECT_EQ(report({"a"})["step_traffic"], Json::object());
}

TEST_F(Generate, SaysWhichLayoutWasChosen) {
  const auto finished = draw({"a", "--layout", "auto"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("layout one rank: predicted"));
  // large enough that products take the most time of a step on any processor
  const auto two = draw(
      {"a", "--layout", "auto", "--devices", "cpu,cpu", "-n", "2", "--size", "256x256", "--json"});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.err, HasSubstr("layout dp 2: predicted"));
  EXPECT_THAT(Json::parse(two.out)["layout"].get<std::string>(), HasSubstr("dp 2"));
}

TEST_F(Generate, FilesSayHowTheyWereMade) {
  draw({"a \xe2\x98\x85", "--negative-prompt", "b", "--true-cfg", "2.5", "--seed", "9",
        "--guidance", "4", "--prompt-2", "c", "--negative-prompt-2", "d", "--guidance-rescale",
        "0.5", "--cfg-norm-cap", "1.5"});
  const auto info = braid({"info", "braid.png", "--json"});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  const auto json = Json::parse(info.out);
  EXPECT_EQ(json["prompt"], "a \xe2\x98\x85");
  EXPECT_EQ(json["prompt_2"], "c");
  EXPECT_EQ(json["negative_prompt"], "b");
  EXPECT_EQ(json["negative_prompt_2"], "d");
  EXPECT_EQ(json["true_cfg"], "2.5");
  EXPECT_EQ(json["guidance_rescale"], "0.5");
  EXPECT_EQ(json["cfg_norm_cap"], "1.5");
  EXPECT_EQ(json["seed"], "9");
  EXPECT_EQ(json["steps"], "2");
  EXPECT_EQ(json["guidance"], "4");
  EXPECT_EQ(json["size"], "32x32");
  EXPECT_EQ(json["model"], "demo");
  EXPECT_THAT(json["software"].get<std::string>(), testing::StartsWith("braid "));
}

TEST_F(Generate, EachOfSeveralPromptsIsWithItsPictures) {
  const auto prompts = write("prompts.txt",
                             "\xef\xbb\xbf"
                             "one\r\n\ntwo");
  const auto files = report({"--prompt-file", prompts, "-n", "2", "--batch-size", "3"})["files"];
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0]["prompt"], "one");
  EXPECT_EQ(files[3], (Json{{"path", "braid-003.png"}, {"prompt", "two"}, {"seed", 3}}));
  const auto text = read_png_text(bytes("braid-003.png"), "");
  EXPECT_THAT(text, testing::IsSupersetOf(PngText{{"prompt", "two"}, {"seed", "3"}}));
}

TEST_F(Generate, StartsFromTheLatentsOfADump) {
  draw({"a", "--seed", "3", "-o", "1.png", "--dump", "d.safetensors", "--dtype", "float32"});
  draw({"a", "--latents", "d.safetensors", "-o", "2.png", "--dtype", "float32"});
  EXPECT_EQ(decode_png(bytes("1.png"), "").rgb, decode_png(bytes("2.png"), "").rgb);
  const auto dump = bytes("d.safetensors");
  EXPECT_THAT(read_png_text(bytes("2.png"), ""),
              testing::IsSupersetOf(
                  PngText{{"latents", "d.safetensors"}, {"latents_sha256", sha256_hex(dump)}}));
  for (const auto* const name : {"prompt_embeds", "pooled_prompt_embeds", "latents_initial",
                                 "sigmas", "timesteps", "velocity_first", "latents_final"})
    EXPECT_THAT(dump, HasSubstr("\"" + std::string(name) + "\""));
}

// One of several pictures again, by what its file says.
TEST_F(SlowGenerate, StartsFromTheLatentsOfOnePictureOfADump) {
  const std::vector<std::string> size = {"a",      "--size", "64x64",   "--steps", "2",
                                         "--seed", "3",      "--dtype", "float32"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto all = size;
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(draw(all).exit_code, 0);
  };
  with({"-n", "2", "-o", "1.png", "--dump", "d.safetensors"});
  with({"-n", "2", "-o", "2.png", "--latents", "d.safetensors"});
  const auto text = read_png_text(bytes("2-001.png"), "");
  EXPECT_THAT(text, testing::Contains(testing::Pair("latents", "d.safetensors=2")));
  with({"--seed", "4", "-o", "3.png", "--latents", "d.safetensors=2"});
  EXPECT_EQ(decode_png(bytes("3.png"), "").rgb, decode_png(bytes("1-001.png"), "").rgb);
  EXPECT_EQ(read_png_text(bytes("3.png"), ""), text);
}

TEST_F(Generate, RefusesLatentsThatDoNotFit) {
  draw({"a", "-q", "--dump", "d.safetensors", "-o", "/dev/null"});
  expect_refusal(draw({"a", "-q", "--latents", "d.safetensors", "--size", "64x64"}), 2,
                 "the initial latents should have the shape");
  expect_refusal(draw({"a", "-q", "--latents", "missing"}), 2, "missing");
  expect_refusal(draw({"a", "-q", "--latents", write("text", "not safetensors")}), 2,
                 "is not a safetensors file");
  const auto two = std::string(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                               R"("b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})");
  const auto file = write("two", std::string(1, char(two.size())) + std::string(7, '\0') + two);
  expect_refusal(draw({"a", "-q", "--latents", file}), 2, "should have a tensor 'latents'");
}

TEST_F(Generate, TakesAnEmptyPrompt) {
  const auto json = report({"", "--negative-prompt=", "--true-cfg", "2"});
  EXPECT_EQ(json["files"][0]["prompt"], "");
  EXPECT_EQ(json["negative_prompt"], "");
}

TEST_F(Generate, SaysWhatItChoseWhenVerbose) {
  EXPECT_THAT(draw({"a", "-v", "--dtype", "float32"}).err, HasSubstr("braid: float32 on cpu with"));
}

TEST_F(Generate, KeepsToABudget) {
  const auto run = report({"a", "--memory", "2GB"});
  EXPECT_EQ(run["fit"]["offload"], "none");
  EXPECT_LE(run["fit"]["predicted_device_bytes"], 2'000'000'000);
  EXPECT_LE(run["peak_memory_bytes"]["decode"], 2'000'000'000);
  EXPECT_TRUE(report({"a"})["fit"].is_null());
  const auto refused = draw({"a", "--memory", "100MB"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("a picture of 32x32 does not fit 100 MB: it needs"));
}

TEST_F(SlowGenerate, KeepsToABudgetWithFilesThatNobodyNamed) {
  const auto fit = report({"a", "--memory", "2GB", "--offload", "leaf", "--prefetch", "0"})["fit"];
  const auto too_little = fit["predicted_device_bytes"].get<std::int64_t>() - 1;
  const auto pages = folder_ / "pages";
  for (const auto* const name : {"braid-pages-killed", "braid-pages-mine"}) {
    std::filesystem::create_directories(pages / name);
    write_file(pages / name / "a.page", "a");
  }
  write_file(pages / "braid-pages-killed/.temporary", "");
  const auto run = Subprocess({.arguments = {"generate", "a", "-m", BRAID_SOURCE_DIR "/models/demo",
                                             "--steps", "2", "--size", "32x32", "-o", "a.png",
                                             "--offload", "leaf", "--prefetch", "0", "--memory",
                                             std::to_string(double(too_little) / 1e6) + "MB"},
                               .environment = {"TMPDIR=" + pages.string()},
                               .folder = folder_})
                       .finish();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(" --offload-dir, predicted peak "));
  EXPECT_THAT(run.err, HasSubstr(" of files are in " + (pages / "braid-pages-").string()));
  EXPECT_EQ(std::filesystem::remove_all(pages / "braid-pages-mine"), 2u) << "a person's";
  EXPECT_TRUE(std::filesystem::is_empty(pages)) << "of this run, and of one that was killed";
}

// Flags take precedence over the budget, the budget over the preset.
TEST_F(Generate, TakesFromAPresetWhatABudgetDoesNotChoose) {
  const auto fit_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"a", "--preset", "rtx-3060", "--memory", "2GB"});
    return report(std::move(more))["fit"];
  };
  const auto chosen = fit_of({});
  EXPECT_EQ(chosen["quantize"], "int8");  // the preset's: not left to the budget
  EXPECT_EQ(chosen["offload"], "none");   // the budget's: there is room
  const auto fixed = fit_of({"--quantize", "auto", "--offload", "leaf", "--prefetch", "3"});
  EXPECT_EQ(fixed["quantize"], "none");
  EXPECT_EQ(fixed["offload"], "leaf");
  EXPECT_EQ(fixed["offload_vae"], "leaf");
  EXPECT_EQ(fixed["prefetch"], 3);
}

TEST_F(Generate, SaysWhatABudgetChose) {
  const auto run = draw({"a", "--memory", "2GB"});
  EXPECT_THAT(run.err, HasSubstr("memory: all weights stay, predicted peak "));
  EXPECT_EQ(draw({"a", "--memory", "2GB", "-q"}).err, "");
  const auto alone = draw({"a", "--quantize", "auto"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--quantize auto"));
}

}  // namespace braid::generate_test
