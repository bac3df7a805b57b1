// Errors in the command line: one sentence, exit code 2, nothing created. flags_test.cc covers the
// values one by one. What is asked for in vain is warned of, also in the report.
#include "workplace.h"

namespace braid::bad_flags_test {

using testing::HasSubstr;

class BadFlags : public Workplace {
 protected:
  void expect_refused(std::vector<std::string> arguments, const std::string& words) const {
    arguments.insert(arguments.begin(), {"generate", "a"});
    expect_bad_input(std::move(arguments), words);
  }
};

TEST_F(BadFlags, NoCommandShowsTheHelp) {
  const auto finished =
      Subprocess({.arguments = {}, .folder = folder_, .from_shell = true}).finish();
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("Usage: braid"));
}

TEST_F(BadFlags, NoPrompt) {
  expect_bad_input({"generate"}, "there is no prompt: say what to draw");
  expect_refused({"--prompt-file", "x"}, "give one of them");
}

TEST_F(BadFlags, NoPromptOnATerminalShowsExamples) {
  if (!has_terminals()) GTEST_SKIP() << "the system has no pseudo-terminals: devpts is not mounted";
  const auto shown =
      Subprocess({.arguments = {"generate"}, .folder = folder_, .on_terminal = true}).finish();
  EXPECT_EQ(shown.exit_code, 2);
  EXPECT_THAT(shown.err, testing::HasSubstr("braid generate \"a green star\" -n 4"));
}

// Weights may take minutes to load.
TEST_F(BadFlags, NoiseLevelsThatAreNoneAreRefusedBeforeWeightsAreLoaded) {
  for (const std::vector<std::string>& levels :
       {std::vector<std::string>{"--shift", "1e30"}, {"--schedule", "karras", "--shift", "1e30"}}) {
    std::vector<std::string> arguments = {"generate", "a", "--steps", "4"};
    arguments.insert(arguments.end(), levels.begin(), levels.end());
    const auto refused = braid(std::move(arguments));
    expect_refusal(refused, 2, "noise levels");
    EXPECT_THAT(refused.err, testing::Not(HasSubstr("load")));
  }
}

TEST_F(BadFlags, UnknownCommandsFlagsAndArguments) {
  expect_bad_input({"draw", "a cat"}, "unknown command 'draw'");
  expect_bad_input({"draw", "--help"}, "unknown command 'draw'");
  expect_refused({"--stepz", "3"}, "unknown flag '--stepz' (did you mean --steps?)");
  expect_bad_input({"generate", "a", "red", "circle"}, "unexpected argument 'red'");
}

TEST_F(BadFlags, Values) {
  expect_refused({"--steps", "0"}, "--steps should be a whole number from 1 to 10000, it is '0'");
  expect_refused({"--size", "0x0"}, "--size should be WIDTHxHEIGHT in pixels");
  expect_refused({"--guidance", "nan"}, "--guidance should be a finite number, it is 'nan'");
  expect_refused({"--threads", "0"}, "--threads should be a whole number from 1 to 1024");
  expect_refused({"--steps", "1\n2\x1b[31m"}, "it is '1 2 [31m'");
}

TEST_F(BadFlags, ASizeThatOnlyTheModelRefuses) {
  expect_refused({"-m", BRAID_SOURCE_DIR "/models/demo", "--size", "8x8"},
                 "the width should lie between 16 and 16384, it is 8");
}

TEST_F(BadFlags, NativeCollectivesWithoutALink) {
  const std::vector<std::string> native = {
      "-m", BRAID_SOURCE_DIR "/models/demo", "--tp", "2", "--collectives", "native"};
  expect_refused(native,
                 "native collectives need a GPU for each rank and NCCL or RCCL between them: rank "
                 "0 computes on a CPU");
}

TEST_F(BadFlags, DevicesThatAreNotThere) {
  expect_refused({"--device", "tpu", "-m", "missing"},
                 "the device should be cpu, cuda or cuda:N, it is 'tpu'");
  expect_refused({"--device", "cuda:99"}, "there is no device cuda:99");
}

// All of these are refused before a model is opened.
TEST_F(BadFlags, LayoutsThatDoNotFitTheDevices) {
  const std::string demo = BRAID_SOURCE_DIR "/models/demo";
  expect_refused({"--devices", "cpu,cpu", "-m", demo},
                 "but there are 2 ranks: ask for degrees that multiply to 2");
  expect_refused({"--devices", "cpu,cpu,cpu", "--tp", "2", "-m", demo}, "= 2, but there are 3");
  expect_refused({"--devices", "cpu,tpu", "--tp", "2", "-m", "missing"}, "it is 'tpu'");
  expect_refused({"--layout", "auto", "--shares", "auto", "-m", demo}, "leave out --shares");
  expect_refused({"--tp", "2", "--shares", "tp=auto", "-m", demo},
                 "a share in --shares tp=auto should be");
  expect_refused({"--tp", "2", "--shares", "ring=1:1,tp=1:0", "-m", demo},
                 "a share in --shares tp=1:0 should be a whole number from 1 to 1000, it is '0'");
  expect_refused({"--tp", "2", "--shares", "tp=3", "-m", demo}, "it has one: tp=3");
  expect_refused({"--cfg-parallel", "2", "-m", demo}, "give a negative prompt");
  expect_refused({"--cfg-parallel", "3", "--negative-prompt", "b", "--true-cfg", "2"},
                 "there are 2");
}

TEST_F(BadFlags, LayoutsThatOnlyTheModelRefuses) {
  const std::string demo = BRAID_SOURCE_DIR "/models/demo";
  expect_refused({"-m", demo, "--layer-split", "9"}, "leaves a rank without a block, there are 8");
  expect_refused({"-m", demo, "--tp", "5", "--text-encoder", "tp"},
                 "tp 5 leaves a rank without a head: CLIP has 4");
  expect_refused({"-m", demo, "--tp", "2", "--shares", "tp=99:1"},
                 "leaves a rank without a head: the transformer has 12");
  expect_refused({"-m", demo, "--guidance-rescale", "1.5"},
                 "the guidance rescale should lie between 0 and 1, it is 1.5");
  expect_refused({"-m", demo, "--cfg-norm-cap", "-1"}, "should be at least 0, it is -1");
  expect_refused({"-m", demo, "--negative-prompt-2", "b"}, "needs a negative prompt");
}

TEST_F(BadFlags, Prompts) {
  expect_bad_input({"generate", "caf\xe9"}, "the prompt should be UTF-8 text, it is 'caf?'");
  expect_refused({"--prompt-2", "\xff"}, "--prompt-2 should be UTF-8");
  expect_refused({"--negative-prompt", "\xc3("}, "--negative-prompt should be UTF-8");
  expect_bad_input({"generate", std::string(120'000, 'a')}, "at most 100000 bytes");
}

TEST_F(BadFlags, PromptFiles) {
  const auto refused = [&](const std::string& file, const std::string& words) {
    expect_bad_input({"generate", "--prompt-file", file}, words);
  };
  refused("missing.txt", "cannot read \"missing.txt\": No such file");
  refused(".", "cannot read \".\": it is not a file");
  refused(write("blank.txt", " \n\r\n\t\n"), "there is no prompt in");
  refused(write("latin1.txt", "fine\n\ncaf\xe9\n"), "latin1.txt, line 3 should be UTF-8");
  refused(write("nul.txt", std::string("a\0b", 3)), "line 1 should be text, it has a NUL byte");
  refused("-", "there is no prompt in standard input");
}

TEST_F(BadFlags, InfoTakesAPictureOrAModel) {
  expect_bad_input({"info", "a.png", "-m", "model"}, "a file, a model or the presets");
  expect_bad_input({"info", "missing.png"}, "missing.png");
  expect_bad_input({"info", "."}, "is a folder: braid info --model");
  expect_bad_input({"info", write("no.txt", "no picture")}, "no.txt");
  expect_bad_input({"info", "-m", "missing"}, "there is no model at missing");
}

using VainFlags = Workplace;

TEST_F(VainFlags, AreWarnedOfInTheReportToo) {
  std::vector<std::string> asked = {"a",    "--components",    "nowhere", "--quantize",
                                    "int8", "--quantize-skip", "zzz"};
  const auto loud = draw(asked).err;
  EXPECT_THAT(loud, HasSubstr("warning: --components nowhere is not read"));
  EXPECT_THAT(loud, HasSubstr("warning: --quantize-skip zzz names no layer of this model"));
  asked.insert(asked.end(), {"-q", "--json"});
  const auto quiet = draw(asked);
  ASSERT_EQ(quiet.exit_code, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  const auto warnings = nlohmann::json::parse(quiet.out)["warnings"];
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0].get<std::string>(), HasSubstr("--components nowhere is not read"));
  EXPECT_EQ(warnings[1], "--quantize-skip zzz names no layer of this model");
}

TEST_F(VainFlags, AreThoseThatCodesOfAnotherFormIgnore) {
  const auto converted = braid(
      {"convert", "-m", BRAID_SOURCE_DIR "/models/demo", "-o", "coded", "--quantize", "int8"});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  const auto drawn = braid({"generate", "a", "-m", "coded", "--size", "32x32", "--steps", "1",
                            "--quantize", "fp8", "-q", "--json"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  const auto warnings = nlohmann::json::parse(drawn.out)["warnings"];
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0].get<std::string>(), HasSubstr("--quantize does not apply to"));
}

}  // namespace braid::bad_flags_test
