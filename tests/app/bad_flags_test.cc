// What the command line gets wrong: one sentence, exit code 2, nothing made.
#include "workplace.h"

namespace braid {
namespace {

using testing::HasSubstr;

class BadFlags : public Workplace {
 protected:
  void expect_refused(std::vector<std::string> arguments, const std::string& words) const {
    arguments.insert(arguments.begin(), {"generate", "a"});
    expect_bad_input(std::move(arguments), words);
  }
};

TEST_F(BadFlags, NoCommandShowsTheHelp) {
  const auto finished = braid({});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("Usage: braid"));
}

TEST_F(BadFlags, NoPrompt) {
  expect_bad_input({"generate"}, "there is no prompt: say what to draw");
  expect_bad_input({"generate", "--steps", "3"}, "there is no prompt");
}

TEST_F(BadFlags, UnknownCommandsFlagsAndArguments) {
  expect_bad_input({"draw", "a cat"}, "unknown command 'draw'");
  expect_bad_input({"--steps", "3"}, "unknown flag '--steps'");
  expect_refused({"--stepz", "3"}, "unknown flag '--stepz' (did you mean --steps?)");
  expect_refused({"-x"}, "unknown flag '-x'");
  expect_bad_input({"generate", "a", "red", "circle"}, "unexpected argument 'red'");
}

TEST_F(BadFlags, FlagsWithoutTheirValue) {
  expect_refused({"--steps"}, "--steps needs a value");
  expect_refused({"--output="}, "--output should be a path, it is empty");
  expect_refused({"--steps", "--seed", "3"}, "it is '--seed'");
}

TEST_F(BadFlags, Sizes) {
  for (const auto* const size : {"0x0", "0x64", "64x0", "-64x64", "64x-64", "64", "x", "64x", "axb",
                                 "64x64x64", "1e3x64", "100000x64", "99999999999999999999x64", "",
                                 " 64x64", "64 x 64", "64.5x64", "nan"})
    expect_refused({"--size", size}, "--size should be WIDTHxHEIGHT in pixels");
  expect_bad_input({"generate", "a", "-m", BRAID_SOURCE_DIR "/models/demo", "--size", "8x8"},
                   "the width should lie between 16 and 16384, it is 8");
}

TEST_F(BadFlags, CountsAndScales) {
  expect_refused({"--steps", "0"}, "--steps should be a whole number from 1 to 10000, it is '0'");
  expect_refused({"--steps", "-1"}, "it is '-1'");
  expect_refused({"--steps", "2.5"}, "it is '2.5'");
  expect_refused({"--steps", "1000000000000000000000"}, "--steps should be");
  expect_refused({"-n", "0"}, "--num-images should be a whole number from 1");
  expect_refused({"--batch-size", "0"}, "--batch-size should be");
  expect_refused({"--guidance", "nan"}, "--guidance should be a finite number, it is 'nan'");
  expect_refused({"--guidance", "inf"}, "--guidance should be a finite number");
  expect_refused({"--guidance", "3,5"}, "--guidance should be a finite number");
  expect_refused({"--true-cfg", "-nan"}, "--true-cfg should be a finite number");
  expect_refused({"--seed", "-1"}, "--seed should be a whole number from 0 to 1844674407370955161");
  expect_refused({"--seed", "18446744073709551616"}, "--seed should be");
  expect_refused({"--max-sequence-length", "513"}, "from 1 to 512, it is '513'");
  for (const auto* const threads : {"0", "-1", "100000", "many"})
    expect_refused({"--threads", threads}, "--threads should be a whole number from 1 to 1024");
}

TEST_F(BadFlags, Choices) {
  expect_refused({"--dtype", "int7"}, "one of auto, float32, bfloat16, float16, it is 'int7'");
  expect_refused({"--vae-tiling", "maybe"}, "one of auto, on, off, it is 'maybe'");
}

TEST_F(BadFlags, DevicesThatAreNotThere) {
  expect_refused({"--device", "tpu"}, "the device should be cpu, cuda or cuda:N, it is 'tpu'");
  expect_refused({"--device", "cuda:x"}, "it is 'cuda:x'");
  expect_refused({"--device", "cuda:99"}, "there is no device cuda:99");
}

TEST_F(BadFlags, ControlCharactersAndHugeValuesStayOnOneLine) {
  expect_refused({"--steps", "1\n2\x1b[31m"}, "it is '1 2 [31m'");
  expect_refused({"--steps", std::string(50'000, '9')}, "999...'");
}

TEST_F(BadFlags, Prompts) {
  expect_bad_input({"generate", "caf\xe9"}, "the prompt should be UTF-8 text, it is 'caf?'");
  expect_refused({"--prompt-2", "\xff"}, "--prompt-2 should be UTF-8");
  expect_refused({"--negative-prompt", "\xc3("}, "--negative-prompt should be UTF-8");
  expect_bad_input({"generate", std::string(120'000, 'a')}, "at most 100000 bytes");
  expect_refused({"--prompt-file", "x"}, "give one of them");
}

TEST_F(BadFlags, PromptFiles) {
  const auto refused = [&](const std::string& file, const std::string& words) {
    expect_bad_input({"generate", "--prompt-file", file}, words);
  };
  refused("missing.txt", "cannot read the prompts in missing.txt: No such file");
  refused(".", "cannot read the prompts in .: Is a directory");
  refused(write("empty.txt", ""), "there is no prompt in");
  refused(write("blank.txt", " \n\r\n\t\n"), "there is no prompt in");
  refused(write("latin1.txt", "fine\n\ncaf\xe9\n"), "latin1.txt, line 3 should be UTF-8");
  refused(write("nul.txt", std::string("a\0b", 3)), "line 1 should be text, it has a NUL byte");
  refused("-", "there is no prompt in standard input");
}

TEST_F(BadFlags, InfoTakesAPictureOrAModel) {
  expect_bad_input({"info", "a.png", "-m", "model"}, "a picture or a model");
  expect_bad_input({"info", "missing.png"}, "missing.png");
  expect_bad_input({"info", "."}, "is a folder: braid info --model");
  expect_bad_input({"info", write("no.txt", "no picture")}, "no.txt");
  expect_bad_input({"info", "-m", "missing"}, "there is no model at missing");
}

}  // namespace
}  // namespace braid
