// The command line, word by word.
#include "app/flags/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"
#include "net/http/web_client.h"

namespace braid::flags_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CommandLine parse(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"braid"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  return parse_command_line(int(argv.size()), argv.data());
}

GenerateFlags generate_flags(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "generate");
  return std::get<GenerateFlags>(parse(std::move(arguments)));
}

void expect_refused(std::vector<std::string> arguments, const std::string& words) {
  arguments.insert(arguments.begin(), {"generate", "a"});
  try {
    parse(arguments);
    ADD_FAILURE() << "not refused: " << testing::PrintToString(arguments);
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

std::string refusal_of(const std::vector<std::string>& line) {
  return message_of([&] { (void)parse(line); });
}

TEST(Flags, FillARequest) {
  const auto f = generate_flags({"a cat",
                                 "--size",
                                 "640x480",
                                 "--steps",
                                 "3",
                                 "--seed=7",
                                 "-n",
                                 "2",
                                 "--guidance",
                                 "-1.5",
                                 "--true-cfg",
                                 "4",
                                 "--negative-prompt",
                                 "dog",
                                 "--prompt-2",
                                 "kitten",
                                 "-m",
                                 "x",
                                 "--comfy",
                                 "c",
                                 "--components",
                                 "y",
                                 "--dtype",
                                 "bfloat16",
                                 "--device",
                                 "cuda:1",
                                 "--threads",
                                 "3",
                                 "--vae-tiling",
                                 "on",
                                 "--batch-size",
                                 "5",
                                 "--max-sequence-length",
                                 "77",
                                 "-o",
                                 "o.png"});
  EXPECT_EQ(f.prompt, "a cat");
  EXPECT_EQ(f.prompt_2, "kitten");
  EXPECT_EQ(f.request.width, 640);
  EXPECT_EQ(f.request.height, 480);
  EXPECT_EQ(f.request.steps, 3);
  EXPECT_EQ(f.request.seed, 7u);
  EXPECT_EQ(f.request.num_images, 2);
  EXPECT_EQ(f.request.guidance, -1.5);
  EXPECT_EQ(f.request.true_cfg, 4);
  EXPECT_EQ(f.request.negative_prompt, "dog");
  EXPECT_EQ(f.request.batch_size, 5);
  EXPECT_EQ(f.request.max_sequence_length, 77);
  EXPECT_EQ(f.request.vae_tiling, VaeTiling::kOn);
  EXPECT_EQ(f.options.model, "x");
  EXPECT_EQ(f.options.components, "y");
  EXPECT_EQ(f.options.comfy, "c");
  EXPECT_EQ(f.options.dtype, Dtype::kBfloat16);
  EXPECT_EQ(f.options.device, "cuda:1");
  EXPECT_EQ(f.options.threads, 3);
  EXPECT_EQ(f.output.path, "o.png");
}

TEST(Flags, FillALayout) {
  const auto f = generate_flags({"a", "--tp", "2", "--pp", "3", "--text-encoder", "tp", "--vae",
                                 "rank0", "--devices", "cuda:0-3,cpu"});
  EXPECT_EQ(f.options.layout.tp, 2);
  EXPECT_EQ(f.options.layout.pp, 3);
  EXPECT_EQ(f.options.layout.text, TextRanks::kShared);
  EXPECT_EQ(f.options.layout.decode, DecodeRanks::kFirst);
  EXPECT_EQ(f.options.devices, std::vector<std::string>({"cuda:0-3", "cpu"}));
  expect_refused({"--text-encoder", "all"}, "--text-encoder should be one of rank0, tp");
  expect_refused({"--vae", "all"}, "--vae should be one of ranks, rank0");
  expect_refused({"--layer-split", "0"}, "--layer-split should be a whole number from 1 to 1024");
  expect_refused({"--pp", "0"}, "--pp or --layer-split should be a whole number from 1 to 1024");
  expect_refused({"-n", "0"}, "--num-images should be");
  for (const auto* const list : {"", ",", "cpu,", ",cpu", "cpu,,cpu"})
    expect_refused({"--devices", list}, "--devices should be devices separated by commas");
}

TEST(Flags, FillTrueGuidance) {
  const auto r =
      generate_flags({"a", "--negative-prompt", "b", "--negative-prompt-2", "c",
                      "--guidance-rescale", "0.7", "--cfg-norm-cap", "1", "--cfg-until", "0.5"})
          .request;
  EXPECT_EQ(r.negative_prompt_2, "c");
  EXPECT_EQ(r.guidance_rescale, 0.7);
  EXPECT_EQ(r.cfg_norm_cap, 1);
  EXPECT_EQ(r.cfg_until, 0.5);
}

TEST(Flags, FillTheSampling) {
  const auto s =
      generate_flags({"a", "--sampler", "res_multistep", "--schedule", "beta", "--shift", "3"})
          .request.sampling;
  EXPECT_EQ(s.sampler, Sampler::kResMultistep);
  EXPECT_EQ(s.schedule, SigmaSchedule::kBeta);
  EXPECT_EQ(s.shift, 3);
  const auto lists =
      generate_flags({"a", "--sigmas", "1,0.98,0.5", "--base-sigmas", "1"}).request.sampling;
  EXPECT_EQ(lists.sigmas, (std::vector<double>{1, 0.98, 0.5}));
  EXPECT_EQ(lists.base_sigmas, std::vector<double>{1});
  expect_refused({"--sampler", "ddim"},
                 "--sampler should be one of euler, euler_ancestral, heun, dpm_2, dpmpp_2m,"
                 " res_multistep, er_sde, lcm, it is 'ddim'");
  expect_refused({"--schedule", "normal"}, "--schedule should be one of model, simple, beta");
  const auto spaced = generate_flags({"a", "--sigmas", "1, 0.5", "--cache-polynomial", "2, 0"});
  EXPECT_EQ(spaced.request.sampling.sigmas, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(spaced.options.cache.polynomial, (std::vector<double>{2, 0}));
  for (const auto* const flag : {"--sigmas", "--base-sigmas", "--cache-polynomial"})
    for (const auto* const list : {"", "1,", "1,,0.5", "1 0.5"})
      expect_refused({flag, list},
                     std::string(flag) + " should be a list of numbers separated by commas");
}

TEST(Flags, LeaveDefaultsToTheModel) {
  const auto f = generate_flags({"a"});
  EXPECT_FALSE(f.request.width || f.request.steps || f.request.guidance);
  EXPECT_FALSE(f.request.max_sequence_length || f.request.negative_prompt);
  EXPECT_EQ(f.request.seed, 0u);
  EXPECT_EQ(f.options.device, "cpu");
  EXPECT_EQ(f.output.path, "");
  EXPECT_EQ(f.verbosity, Verbosity::kNormal);
}

TEST(Flags, TakeTextThatLooksLikeSomethingElse) {
  EXPECT_EQ(generate_flags({""}).prompt, "");
  EXPECT_EQ(generate_flags({"info"}).prompt, "info");
  EXPECT_EQ(generate_flags({"generate"}).prompt, "generate");
  EXPECT_EQ(generate_flags({"--", "--steps"}).prompt, "--steps");
  EXPECT_EQ(generate_flags({"[a, b]"}).prompt, "[a, b]");
  EXPECT_EQ(generate_flags({"a=b"}).prompt, "a=b");
  EXPECT_EQ(generate_flags({"a", "--prompt-2=-x"}).prompt_2, "-x");
  EXPECT_EQ(generate_flags({"a", "--prompt-2", "{1,2}"}).prompt_2, "{1,2}");
}

TEST(Flags, MayHaveEmptyValues) {
  EXPECT_EQ(generate_flags({"a", "--negative-prompt="}).request.negative_prompt, "");
  EXPECT_EQ(generate_flags({"a", "--negative-prompt", ""}).request.negative_prompt, "");
  EXPECT_EQ(generate_flags({"--", "--prompt-2="}).prompt, "--prompt-2=");
}

TEST(Flags, LetTheLastOfTwoWin) {
  EXPECT_EQ(generate_flags({"a", "--seed", "1", "--seed=2"}).request.seed, 2u);
}

TEST(Flags, LetHelpComeBeforeComplaints) {
  const auto line = parse({"generate", "--steps", "0", "--nonsense", "--help"});
  EXPECT_TRUE(std::get<ShowText>(line).was_asked_for);
}

TEST(Flags, AreNamedWhenUnknownOrWithoutAValue) {
  expect_refused({"--stepz", "3"}, "unknown flag '--stepz' (did you mean --steps?)");
  expect_refused({"--sed", "3"}, "(did you mean --seed?)");
  expect_refused({"--nonsense"}, "unknown flag '--nonsense': braid generate --help lists them");
  expect_refused({"-x"}, "unknown flag '-x'");
  expect_refused({"--steps"}, "--steps needs a value");
  expect_refused({"--steps", "--seed"}, "it is '--seed'");
  expect_refused({"--output="}, "--output should be a path, it is empty");
  EXPECT_THROW(parse({"--steps", "3"}), InputError);
}

TEST(Flags, AreNoneOfSeveralWords) {
  EXPECT_EQ(
      refusal_of({"generate", "a", "cat"}),
      "unexpected argument 'cat': a prompt of several words goes in quotes, and a flag stands "
      "before each of its values");
  EXPECT_EQ(refusal_of({"pull", "org/a", "org/b"}),
            "unexpected argument 'org/b': pull takes one name: give each its own command");
  EXPECT_THAT(refusal_of({"info", "a.png", "b.png"}), HasSubstr("info takes one file"));
  EXPECT_THAT(refusal_of({"info", ""}), HasSubstr("its name is empty"));
  EXPECT_THAT(refusal_of({"bench", "--plot", "a.png"}), HasSubstr("ends in .svg, it is 'a.png'"));
  for (const char* const command : {"bench", "verify"})
    EXPECT_THAT(refusal_of({command, "--blocks", "1,1", "--single", "2"}),
                HasSubstr("leave --double and --single out"));
  EXPECT_THAT(refusal_of({"bench", "--blocks", "19,x"}),
              HasSubstr("a number in --blocks 19,x should be a whole number"));
  EXPECT_THAT(refusal_of({"serve", "model"}), HasSubstr("braid serve takes flags alone"));
}

// A flag without a value has no place in --sweep, and is not what was meant.
TEST(Flags, AreNotSuggestedToThoseWhoTypedThem) {
  const auto refusal = refusal_of({"bench", "--sweep", "check-order=a,b"});
  EXPECT_THAT(refusal, AllOf(HasSubstr("'--check-order'"), Not(HasSubstr("did you mean"))));
}

TEST(Flags, RefuseSizesThatAreNone) {
  for (const auto* const size :
       {"0x0", "0x64", "64x0", "-64x64", "64x-64", "64", "x", "64x", "axb", "64x64x64", "1e3x64",
        "100000x64", "99999999999999999999x64", "", " 64x64", "64 x 64", "64.5x64", "nan"})
    expect_refused({"--size", size}, "--size should be WIDTHxHEIGHT in pixels");
}

TEST(Flags, RefuseCountsOutOfRange) {
  expect_refused({"--steps", "0"}, "--steps should be a whole number from 1 to 10000, it is '0'");
  expect_refused({"--steps", "-1"}, "it is '-1'");
  expect_refused({"--steps", "2.5"}, "it is '2.5'");
  expect_refused({"--steps", "1000000000000000000000"}, "--steps should be");
  expect_refused({"-n", "0"}, "--num-images should be a whole number from 1");
  expect_refused({"--batch-size", "0"}, "--batch-size should be");
  expect_refused({"--seed", "-2"}, "--seed should be a whole number from 0 to 1844674407370955161");
  expect_refused({"--seed", "18446744073709551616"}, "--seed should be");
  expect_refused({"--max-sequence-length", "16385"}, "from 1 to 16384, it is '16385'");
  for (const auto* const threads : {"0", "-1", "100000", "many"})
    expect_refused({"--threads", threads}, "--threads should be a whole number from 1 to 1024");
}

TEST(Flags, RefuseScalesThatAreNotFinite) {
  for (const auto* const scale : {"nan", "NaN", "inf", "-inf", "3,5", "high", ""})
    for (const auto* const flag : {"--guidance", "--true-cfg"})
      expect_refused({flag, scale}, std::string(flag) + " should be a finite number");
  expect_refused({"--guidance", "1e308"}, "--guidance is too large");
}

TEST(Flags, SayHowWeightsAreKept) {
  const auto f = generate_flags({"a", "--quantize", "int8-dynamic", "--quantize-text", "int8",
                                 "--quantize-skip", "img_in,double_blocks.*.img_mod.lin"});
  EXPECT_EQ(f.options.memory.quantize, Quantize::kInt8Dynamic);
  EXPECT_EQ(f.options.memory.quantize_text, Quantize::kInt8);
  EXPECT_EQ(f.options.memory.keep_dense,
            (std::vector<std::string>{"img_in", "double_blocks.*.img_mod.lin"}));
  EXPECT_EQ(generate_flags({"a", "--quantize-skip", "img_in, txt_in"}).options.memory.keep_dense,
            (std::vector<std::string>{"img_in", "txt_in"}));
  expect_refused(
      {"--quantize", "int4"},
      "--quantize should be one of none, auto, int8, int8-v1, int8-dynamic, fp8, it is 'int4'");
  expect_refused({"--quantize-skip", "img_in,,txt_in"}, "separated by commas");
}

TEST(Flags, SayWhatACacheLeavesOut) {
  EXPECT_EQ(generate_flags({"a"}).options.cache.mode, CacheMode::kOff);
  const auto f = generate_flags(
      {"a", "--cache", "accumulated:0.25", "--cache-limit", "5", "--cache-polynomial", "2,-1,0.5"});
  EXPECT_EQ(f.options.cache.mode, CacheMode::kAccumulated);
  EXPECT_EQ(f.options.cache.threshold, 0.25);
  EXPECT_EQ(f.options.cache.most_in_a_row, 5);
  EXPECT_EQ(f.options.cache.polynomial, (std::vector{2.0, -1.0, 0.5}));
  expect_refused({"--cache", "tea"}, "--cache should be one of off, first-block, accumulated");
  expect_refused({"--cache", "off:1"}, "--cache off takes no threshold, it is 'off:1'");
  expect_refused({"--cache", "first-block:-1"}, "should have a threshold from 0 to 100");
}

TEST(Flags, SayWhereWeightsAre) {
  const auto all = generate_flags({"a", "--offload-text", "model", "--offload", "block"});
  EXPECT_EQ(all.options.memory.offload.transformer, OffloadMode::kBlock);
  EXPECT_EQ(all.options.memory.offload.text, OffloadMode::kModel) << "whichever comes first";
  EXPECT_EQ(all.options.memory.offload.vae, OffloadMode::kBlock);
  const auto f =
      generate_flags({"a", "--offload-group", "4", "--prefetch", "2", "--resident", "all",
                      "--residency", "leading", "--pin", "on-the-fly", "--offload-dir",
                      "/tmp/pages", "--disk-reads", "mapped", "--check-order"});
  EXPECT_EQ(f.options.memory.offload.blocks, 4);
  EXPECT_EQ(f.options.memory.offload.prefetch, 2);
  EXPECT_EQ(f.options.memory.offload.resident, -1);
  EXPECT_EQ(f.options.memory.offload.residency, Residency::kLeading);
  EXPECT_EQ(f.options.memory.offload.pin, Pin::kOnTheFly);
  EXPECT_EQ(f.options.memory.offload.folder, "/tmp/pages");
  EXPECT_EQ(f.options.memory.offload.reads, DiskReads::kMapped);
  EXPECT_TRUE(f.options.memory.offload.checks_order);
  expect_refused({"--offload", "disk"}, "--offload should be one of none, model, block, leaf");
  expect_refused({"--prefetch", "65"}, "--prefetch");
}

TEST(Flags, SayWhatToConvert) {
  const auto f = std::get<ConvertFlags>(
      parse({"convert", "-m", "a", "-o", "b", "--single-file", "--quantize", "int8"}));
  EXPECT_EQ(f.options.model, "a");
  EXPECT_EQ(f.options.out, "b");
  EXPECT_EQ(f.options.form, ConvertOptions::Form::kSingleFile);
  EXPECT_EQ(f.options.memory.quantize, Quantize::kInt8);
  EXPECT_THROW(parse({"convert", "-m", "a"}), InputError);
  EXPECT_THROW(parse({"convert", "-o", "b"}), InputError);
}

TEST(Flags, RefuseAFilesNameForAConvertedDirectory) {
  for (const auto* const name : {"b.gguf", "b.safetensors", "dir/b.GGUF"})
    EXPECT_EQ(refusal_of({"convert", "-m", "a", "-o", name}),
              std::string(name) +
                  " is named as a file, a directory is written: give "
                  "--single-file or another name");
  EXPECT_THAT(refusal_of({"convert", "-m", "a", "-o", "-"}), HasSubstr("standard output"));
  EXPECT_EQ(refusal_of({"convert", "-m", "a", "-o", "b.safetensors", "--single-file"}), "");
  EXPECT_EQ(refusal_of({"convert", "-m", "a", "-o", "FLUX.1-dev"}), "");
}

TEST(Flags, RefuseAToleranceThatNothingPasses) {
  for (const auto* const tolerance : {"-1", "-1e-9", "nan", "inf"})
    EXPECT_THAT(refusal_of({"verify", "--tolerance", tolerance}), HasSubstr("--tolerance should"));
  EXPECT_EQ(refusal_of({"verify", "--tolerance", "0"}), "");
}

TEST(Flags, RefuseDegreesNextToAnAutomaticLayout) {
  EXPECT_EQ(generate_flags({"a", "--layout", "auto"}).options.layout.fit, Fit::kAuto);
  expect_refused({"--layout", "fast"}, "--layout should be one of auto, it is 'fast'");
  expect_refused({"--layout", "auto", "--ring", "2"}, "--layout auto chooses the degrees itself");
}

TEST(Flags, RefuseUnknownChoices) {
  expect_refused({"--dtype", "int7"}, "one of auto, float32, bfloat16, float16, it is 'int7'");
  expect_refused({"--vae-tiling", "maybe"}, "one of auto, on, off, it is 'maybe'");
  expect_refused({"--steps", std::string(50'000, '9')}, "999...'");
}

TEST(Flags, NameLorasWithTheirScales) {
  const auto f = generate_flags(
      {"a", "--lora", "x.safetensors", "--lora", "y=z.safetensors=-0.5", "--lora-mode", "beside"});
  ASSERT_EQ(f.options.adapters.size(), 2u);
  EXPECT_EQ(f.options.adapters[0].file, "x.safetensors");
  EXPECT_EQ(f.options.adapters[0].scale, 1);
  EXPECT_EQ(f.options.adapters[1].file, "y=z.safetensors");
  EXPECT_EQ(f.options.adapters[1].scale, -0.5);
  EXPECT_EQ(f.options.adapter_mode, AdapterMode::kUnmerged);
  expect_refused({"--lora", "=2"}, "FILE or FILE=SCALE");
  expect_refused({"--lora", "x=inf"}, "--lora");
  expect_refused({"--lora-mode", "merged"}, "auto, fused, unmerged, beside");
}

void expect_serve_refused(std::vector<std::string> arguments, const std::string& words) {
  arguments.insert(arguments.begin(), "serve");
  EXPECT_THAT(message_of([&] { parse(arguments); }), HasSubstr(words))
      << testing::PrintToString(arguments);
}

TEST(Flags, ShowAChatServerWhereTheEnhancersAddressIsNone) {
  if (!net::has_web_client()) GTEST_SKIP() << "this build looks at no addresses";
  expect_refused({"--enhancer", "x"},
                 "--enhancer should be an address such as http://127.0.0.1:8080/v1, it is 'x'");
}

TEST(Flags, TakeThisMachineByEachOfItsNames) {
  for (const std::string host :
       {"localhost", "LOCALHOST", "::1", "[::1]", "127.0.0.1", "127.0.1.1"})
    EXPECT_EQ(message_of([&] { parse({"serve", "--host", host}); }), "") << host;
  for (const auto* const host : {"0.0.0.0", "::", "[::]"})
    expect_serve_refused({"--host", host}, "others can reach --host ");
}

TEST(Flags, RefuseTwoAddressesOfAServer) {
  expect_serve_refused({"--unix-socket", "a", "--host", "::1"}, "both --host and --unix-socket");
  expect_serve_refused({"--host", "unix:a", "--unix-socket", "a"}, "both --host and --unix-socket");
  expect_serve_refused({"--unix-socket", "a", "--port", "1"},
                       "--port should be left out with --unix-socket");
  expect_serve_refused({"--port", "0", "--host", "unix:a"},
                       "--port should be left out with --host unix:PATH");
  for (const std::vector<std::string>& one :
       {std::vector<std::string>{"--unix-socket", "a"}, {"--host", "unix:a"}}) {
    auto arguments = one;
    arguments.insert(arguments.begin(), "serve");
    EXPECT_EQ(message_of([&] { parse(arguments); }), "") << one.front();
  }
}

TEST(Flags, RefuseEmptyAddressesAndPaths) {
  for (const auto* const host : {"", " ", "unix:"})
    expect_serve_refused({"--host", host}, "--host should be an address to listen on");
  expect_serve_refused({"--unix-socket", ""}, "--unix-socket should be a path, it is empty");
  expect_serve_refused({"-m", ""}, "--model should be a path, it is empty");
  expect_refused({"--text-encoder-file", ""}, "--text-encoder-file should be a path, it is empty");
}

}  // namespace braid::flags_test
