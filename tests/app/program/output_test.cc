// Where pictures go, and what happens if they cannot.
#include <sys/mount.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "has_match.h"
#include "image/picture_file.h"
#include "workplace.h"

namespace braid::output_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Output : public Workplace {
 protected:
  std::vector<std::string> with(std::vector<std::string> arguments) const {
    std::vector<std::string> all = {"generate", "a",     "-m",      BRAID_SOURCE_DIR "/models/demo",
                                    "--size",   "32x32", "--steps", "1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  void expect_unwritable(const std::string& output, const std::string& words) const {
    expect_refusal(draw({"a", "-o", output}), 2, words);
  }
};

TEST_F(Output, IsNamedAsAskedAndPrinted) {
  EXPECT_EQ(draw({"a", "-o", "one.png"}).out, "one.png\n");
  EXPECT_EQ(draw({"a", "-o", "no-extension"}).out, "no-extension\n");
  fs::create_directory(folder_ / "there");
  EXPECT_EQ(draw({"a", "-o", "there"}).out, "there/braid.png\n");
  EXPECT_EQ(draw({"a", "-o", "there/"}).out, "there/braid.png\n");
  EXPECT_EQ(draw({"a", "-o", "new/deep/"}).out, "new/deep/braid.png\n");
  EXPECT_EQ(files(), (std::set<std::string>{"new", "no-extension", "one.png", "there"}));
}

using SlowOutput = Output;

// With -n 2, too, names follow the folder's rule, which alone gives a second one.
TEST_F(SlowOutput, KeepsOldPicturesOfAFolderAndWithoutAName) {
  EXPECT_EQ(braid(with({})).out, "braid.png\n");
  EXPECT_EQ(braid(with({})).out, "braid-001.png\n");
  EXPECT_EQ(braid(with({"-o", "set/", "-n", "2"})).out, "set/braid-000.png\nset/braid-001.png\n");
  const auto first = read_file(folder_ / "set/braid-000.png");
  EXPECT_EQ(braid(with({"-o", "set/", "-n", "2", "--seed", "9"})).out,
            "set/braid-002.png\nset/braid-003.png\n");
  EXPECT_EQ(read_file(folder_ / "set/braid-000.png"), first);
  const auto refused = braid(with({"-o", "braid.png", "--overwrite", "never", "-m", "nowhere"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("braid.png exists already"));
}

TEST_F(Output, MayBeStandardOutput) {
  const auto piped = braid(with({"-o", "-"}));
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(braid(with({"-o", "./-"})).out, "./-\n");
  EXPECT_EQ(piped.out, read_file(folder_ / "-"));
  expect_refusal(braid(with({"-o", "-", "-n", "2"})), 2, "--output - is one picture");
  expect_refusal(braid(with({"-o", "-", "--json"})), 2, "both write to standard output");
  expect_refusal(braid(with({"-o", "-", "--overwrite", "never"})), 2, "--overwrite");
}

// Pixels are lossy, so that their first bytes and the text must do.
TEST_F(Output, OfEveryFormatSaysHowItWasMade) {
  const auto settings = [&](const std::string& file) {
    auto info = nlohmann::json::parse(braid({"info", "--json", file}).out);
    info.erase("path");
    return info;
  };
  for (const auto* const file : {"a.png", "a.jpg", "a.webp"})
    EXPECT_EQ(braid(with({"-o", file, "--seed", "5"})).out, std::string(file) + "\n");
  EXPECT_EQ(braid(with({"--format", "webp"})).out, "braid.webp\n");
  EXPECT_THAT(read_file(folder_ / "a.jpg"), testing::StartsWith("\xff\xd8\xff"));
  EXPECT_THAT(read_file(folder_ / "braid.webp"), testing::StartsWith("RIFF"));
  const auto wanted = settings("a.png");
  EXPECT_EQ(wanted.at("seed"), "5");
  EXPECT_EQ(settings("a.jpg"), wanted);
  EXPECT_EQ(settings("a.webp"), wanted);
}

TEST_F(SlowOutput, OfARandomSeedSaysIt) {
  for (const auto* const seed : {"random", "-1"}) {
    const auto drawn = braid(with({"-o", "a.png", "--seed", seed}));
    const auto info = nlohmann::json::parse(braid({"info", "--json", "a.png"}).out);
    EXPECT_THAT(drawn.err, HasSubstr("seed " + info.at("seed").get<std::string>() + "\n"));
    const auto bytes = read_file(folder_ / "a.png");
    ASSERT_EQ(braid(with({"-o", "a.png", "--seed", info.at("seed")})).exit_code, 0);
    EXPECT_EQ(read_file(folder_ / "a.png"), bytes);
  }
  EXPECT_THAT(braid(with({"--seed", "-2"})).err,
              HasSubstr("--seed should be a whole number from 0"));
}

TEST_F(Output, SeveralPicturesAreNumbered) {
  EXPECT_EQ(draw({"a", "-n", "2", "-o", "x.png"}).out, "x-000.png\nx-001.png\n");
  fs::create_directory(folder_ / "there");
  const auto prompts = write("prompts.txt",
                             "\xef\xbb\xbf"
                             "a red circle\r\n\na blue star");
  EXPECT_EQ(draw({"--prompt-file", prompts, "-n", "2", "-o", "there", "--batch-size", "3"}).out,
            "there/braid-000.png\nthere/braid-001.png\nthere/braid-002.png\nthere/braid-003.png\n");
}

TEST_F(Output, ReplacesAnOldFileAndFollowsALink) {
  write("old.png", "old");
  fs::create_symlink("old.png", folder_ / "link.png");
  EXPECT_EQ(draw({"a", "-o", "link.png"}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.png"));
  EXPECT_THAT(read_file(folder_ / "old.png"), testing::StartsWith("\x89PNG"));
  fs::create_symlink("new.png", folder_ / "early.png");
  EXPECT_EQ(draw({"a", "-o", "early.png"}).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "early.png"));
  EXPECT_THAT(read_file(folder_ / "new.png"), testing::StartsWith("\x89PNG"));
}

TEST_F(Output, MayBeADevice) {
  EXPECT_EQ(draw({"a", "-o", "/dev/null"}).out, "/dev/null\n");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// `docker run -v $PWD/a.png:/a.png` makes one.
TEST_F(Output, MayBeAMountPoint) {
  write("outer.png", "old");
  const auto file = write("a.png", "below");
  if (::mount((folder_ / "outer.png").c_str(), file.c_str(), nullptr, MS_BIND, nullptr) != 0)
    GTEST_SKIP() << "needs root";
  const auto finished = braid(with({"-o", "a.png"}));
  EXPECT_EQ(::umount(file.c_str()), 0);
  EXPECT_EQ(finished.out, "a.png\n") << finished.err;
  EXPECT_THAT(read_file(folder_ / "outer.png"), testing::StartsWith("\x89PNG"));
  EXPECT_EQ(read_file(file), "below");
}

// What is printed would follow the picture into the same file.
TEST_F(SlowOutput, ByAnotherNameOfStandardOutputIsThePictureAlone) {
  if (!fs::exists("/proc/self/fd")) GTEST_SKIP() << "the system has no /proc";
  const auto piped = braid(with({"-o", "-"})).out;
  EXPECT_EQ(braid(with({"-o", "/dev/stdout"})).out, piped);
  const auto log = write("log", "old\n");
  for (const auto* const name : {"/dev/stdout", "/proc/self/fd/1", "log"}) {
    write("log", "old\n");
    const auto finished = run_in_shell("exec \"$0\" \"$@\" >> log", with({"-o", name}), folder_);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(read_file(log), "old\n" + piped) << name;
  }
  const auto other = run_in_shell("exec \"$0\" \"$@\" 5>> log", with({"-o", "/dev/fd/5"}), folder_);
  EXPECT_EQ(other.out, "/dev/fd/5\n");
  EXPECT_EQ(read_file(log), "old\n" + piped + piped);
  expect_refusal(braid(with({"-o", "/dev/stdout", "-n", "2"})), 2, "--output - is one picture");
  expect_refusal(braid(with({"-o", "/dev/stdout", "--json"})), 2, "both write to standard output");
  expect_refusal(braid(with({"--dump", "/dev/stdout"})), 2, "--dump /dev/stdout is no file");
}

// Messages would stand between its bytes.
TEST_F(SlowOutput, IsNotWhereMessagesGo) {
  if (!fs::exists("/proc/self/fd")) GTEST_SKIP() << "the system has no /proc";
  const std::string sentence =
      " is no file of its own: standard error, which is for messages, goes there";
  for (const std::string name : {"/dev/stderr", "/proc/self/fd/2", "log.png"}) {
    const auto finished =
        run_in_shell("exec \"$0\" \"$@\" 2> log.png", with({"-o", name}), folder_);
    EXPECT_EQ(finished.exit_code, 2) << name;
    EXPECT_THAT(read_file(folder_ / "log.png"), HasSubstr("--output " + name + sentence));
  }
  const auto both =
      run_in_shell("exec \"$0\" \"$@\" > log.png 2>&1", with({"-o", "log.png"}), folder_);
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(read_file(folder_ / "log.png"), HasSubstr("--output log.png" + sentence));
  const auto dump =
      run_in_shell("exec \"$0\" \"$@\" 2> log", with({"--dump", "/dev/stderr"}), folder_);
  EXPECT_EQ(dump.exit_code, 2);
  EXPECT_THAT(read_file(folder_ / "log"), HasSubstr("--dump /dev/stderr" + std::string(sentence)));
  EXPECT_EQ(
      run_in_shell("exec \"$0\" \"$@\" 2> /dev/null", with({"-o", "/dev/null"}), folder_).exit_code,
      0);
}

TEST_F(Output, IsNothingThatIsRead) {
  const auto picture = read_file(fs::path(BRAID_SOURCE_DIR) / "tests/data/pictures/clear.png");
  write("a", picture);
  write("b", picture);
  write("prompts", "a\n");
  const auto kept = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), {"generate", "--size", "32x32", "--steps", "1"});
    expect_bad_input(std::move(arguments), words);
    EXPECT_EQ(read_file(folder_ / "a"), picture);
  };
  kept({"a", "--init", "a", "--dump", "a"}, "which --init reads");
  kept({"a", "--init", "b", "--mask", "a", "-o", "./a"}, "which --mask reads");
  kept({"--prompt-file", "prompts", "-o", "prompts"}, "which --prompt-file reads");
  EXPECT_EQ(read_file(folder_ / "prompts"), "a\n");
  EXPECT_EQ(draw({"a", "--init", "a", "-o", "a"}).out, "a\n");
  EXPECT_NE(read_file(folder_ / "a"), picture);
}

// The file has no room for all of its text.
TEST_F(Output, OfALongPromptSaysThatAJpegHasCutIt) {
  write("prompts", std::string(80'000, 'a') + "\n");
  const auto made = [&](const std::string& name) {
    return draw({"--prompt-file", "prompts", "-o", name, "--seed", "5"});
  };
  EXPECT_THAT(made("a.jpg").err, HasSubstr("warning: JPEG has room for 64 KiB"));
  EXPECT_THAT(made("a.png").err, testing::Not(HasSubstr("64 KiB")));
  EXPECT_EQ(nlohmann::json::parse(braid({"info", "--json", "a.jpg"}).out).at("seed"), "5");
}

TEST_F(Output, IsRefusedBeforeAnythingIsLoadedWhereItCannotBe) {
  write("file", "x");
  expect_unwritable("file/a.png", "file is not a folder");
  expect_unwritable("missing/a.png", "there is no folder missing");
  expect_unwritable("/proc/a.png", "cannot write");
  expect_unwritable(std::string(300, 'x') + ".png", "File name too long");
  expect_refusal(draw({"a", "-o", "file/new/"}), 2, "cannot make the folder file/new");
  expect_refusal(draw({"a", "-o", "new/deep/", "-m", "nowhere"}), 2, "there is no model");
  expect_refusal(draw({"a", "-o", "a.gif"}), 2, "--output should end in .png, .jpg or .webp");
  expect_refusal(draw({"a", "-o", "a.png", "--dump", "a.png"}), 2, "are the same file");
  expect_refusal(draw({"a", "-o", "a.png", "--dump", "./a.png"}), 2, "are the same file");
  fs::create_symlink("a.png", folder_ / "link");
  expect_refusal(draw({"a", "-o", "a.png", "--dump", "link"}), 2, "are the same file");
  fs::remove(folder_ / "link");
  expect_refusal(draw({"a", "-o", "a.webp", "--size", "16384x16"}), 2,
                 "the sides of a WebP should lie between 1 and 16383");
  expect_refusal(draw({"a", "--dump", "missing/a"}), 2, "there is no folder missing");
  expect_refusal(draw({"a", "--dump", "."}), 2, "should be a file, it is a folder");
  expect_refusal(draw({"a", "--dump", "-"}), 2, "--dump - is no file: standard output is for what");
  EXPECT_THAT(files(), ElementsAre("file"));
}

TEST_F(Output, IsRefusedInAFolderThatWasRemoved) {
  const char* const removed = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
  const auto ended = run_in_shell(removed, {"models"}, folder_);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.err,
            "braid: cannot find the current folder: No such file or directory; start in one that "
            "exists\n");
}

TEST_F(Output, AFullDiskEndsTheRunAndLeavesNothing) {
  const auto finished =
      Subprocess({.arguments = with({"-o", "a.png"}), .folder = folder_, .largest_file = 100})
          .finish();
  expect_refusal(finished, 1, "cannot write");
  EXPECT_TRUE(files().empty());
}

TEST_F(Output, AFullFileSystemKeepsTheOldFile) {
  const auto disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16k") != 0) GTEST_SKIP() << "needs root";
  write_file(disk / "a.png", "old");
  write_file(disk / "filler", std::string(8 << 10, 'x'));
  const auto finished = braid(with({"-o", "disk/a.png", "--size", "128x128"}));
  const auto kept = read_file(disk / "a.png");
  const auto count = std::distance(fs::directory_iterator(disk), fs::directory_iterator());
  EXPECT_EQ(::umount(disk.c_str()), 0);
  expect_refusal(finished, 1, "No space left on device");
  EXPECT_EQ(kept, "old");
  EXPECT_EQ(count, 2);
}

TEST_F(Output, AReadOnlyFileSystemIsRefusedAtOnce) {
  const auto disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", MS_RDONLY, "size=16k") != 0)
    GTEST_SKIP() << "needs root";
  const auto finished = braid(with({"-o", "disk/a.png"}));
  EXPECT_EQ(::umount(disk.c_str()), 0);
  expect_refusal(finished, 2, "Read-only file system");
}

TEST_F(Output, StandardOutputThatTakesNothingIsAnError) {
  for (const auto& start :
       {Invocation{.arguments = with({}), .folder = folder_, .out_file = "/dev/full"},
        Invocation{.arguments = with({"--json"}), .folder = folder_, .out_file = "/dev/full"},
        Invocation{.arguments = {"--help"}, .folder = folder_, .out_file = "/dev/full"},
        Invocation{.arguments = {"--version"}, .folder = folder_, .out_file = "/dev/full"}}) {
    const auto finished = Subprocess(start).finish();
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_THAT(finished.err, HasSubstr("braid: cannot write to standard output: "));
  }
}

// Otherwise the first file opened would become standard output and receive the printed paths.
TEST_F(Output, StandardOutputThatIsClosedStaysClosed) {
  const auto finished =
      Subprocess({.arguments = with({}), .folder = folder_, .from_shell = true, .close_out = true})
          .finish();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("cannot write to standard output: Bad file descriptor"));
}

TEST_F(Output, ABrokenPipeIsAnError) {
  Subprocess running({.arguments = with({}), .folder = folder_});
  running.close_out();
  const auto finished = running.finish();
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("cannot write to standard output: Broken pipe"));
}

// A request for one picture makes a file for each layer.
TEST_F(SlowOutput, NumbersTheLayersOfAPicture) {
  const std::string folder = BRAID_SOURCE_DIR "/tests/data/parity/qwen-image-layered/";
  const auto drawn = [&](const std::string& layers, const std::string& pictures = "1") {
    return braid({"generate", "a", "-m", folder + "model", "--reference", folder + "reference0.png",
                  "--size", "64x32", "--steps", "2", "--guidance", "1", "--layers", layers, "-o",
                  "name.png", "-n", pictures});
  };
  const auto finished = drawn("2");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "name-0.png\nname-1.png\n");
  const auto told = braid({"info", "name-1.png"}).out;
  EXPECT_THAT(told, HasMatch("layers +2\n"));
  EXPECT_THAT(told, HasMatch("layer +1\n"));
  const auto refused = drawn("21");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err, "braid: the number of layers should lie between 1 and 20, it is 21\n");
  EXPECT_THAT(drawn("2", "1000000").err,
              HasSubstr("at most 1000000 files can be written at once, 2000000 were asked for"));
}

// PNG and WebP hold the same transparency; a JPEG has the picture on white, which is said once.
TEST_F(Output, KeepsTheTransparencyOfPicturesWhereTheFormatHasIt) {
  const auto made = [&](const std::string& name) {
    std::vector<std::string> arguments = {
        "generate", "a",     "-m",      BRAID_SOURCE_DIR "/tests/data/parity/qwen21/model",
        "--size",   "64x32", "--steps", "2",
        "--seed",   "3",     "-n",      "2",
        "-o",       name};
    if (name != "a.png") arguments.insert(arguments.end(), {"--quality", "100"});
    const auto finished = braid(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const auto said = finished.err.find("pictures are laid on white");
    EXPECT_EQ(said != std::string::npos, name == "a.jpg");
    EXPECT_EQ(finished.err.find("pictures are laid on white", said + 1), std::string::npos);
    const auto file = "a-000" + name.substr(1);
    return decode_picture(read_file(folder_ / file), file, kMaxPixels, with_alpha);
  };
  const auto png = made("a.png");
  EXPECT_EQ(png.channels(), 4);
  EXPECT_EQ(made("a.webp").alpha, png.alpha);
  EXPECT_EQ(made("a.jpg").channels(), 3);
}

}  // namespace braid::output_test
