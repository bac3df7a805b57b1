// Clients' JSON: numbers in range, fields by name, and complaints naming the field.
#include "serve/body/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_backend.h"
#include "message_of.h"
#include "serve/api_error.h"
#include "serve/body/picture_request.h"

namespace braid::serve::fields_test {

using testing::HasSubstr;

// The request of `body`, or the ApiError.
Request read(const std::string& body) {
  static FakeEngine engine;
  static const std::vector<Backend> backends = {engine.backend()};
  Fields fields(body);
  const auto& backend = read_model(fields, backends);
  const auto request = read_picture_fields(fields, backend, {});
  fields.finish();
  return completed_request(request, backend, {}).request;
}

struct Refusal {
  int status = 0;
  std::string param, message, code;
};
Refusal refusal(const std::string& body) {
  try {
    read(body);
  } catch (const ApiError& error) {
    return {error.status, error.param, error.what(), error.code};
  }
  return {};
}

TEST(Fields, FillARequest) {
  const auto r = read(R"({"prompt": "a fox", "n": 2, "size": "64x32", "seed": 18446744073709551615,
                          "num_inference_steps": 3, "guidance_scale": 2.5, "model": "demo"})");
  EXPECT_EQ(r.prompts, std::vector<std::string>{"a fox"});
  EXPECT_EQ(r.num_images, 2);
  EXPECT_EQ(r.width, 64);
  EXPECT_EQ(r.height, 32);
  EXPECT_EQ(r.seed, 18446744073709551615u);
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.guidance, 2.5);
}

TEST(Fields, LeaveSizeAndStepsToTheServersLimits) {
  FakeEngine engine;
  const auto backend = engine.backend();
  const auto size_of = [&](Request request, std::int64_t max_pixels) {
    request.prompts = {"a"};
    const auto all = completed_request(request, backend, {.max_pixels = max_pixels}).request;
    return std::pair(*all.width, *all.height);
  };
  EXPECT_EQ(size_of({}, 128 * 64), std::pair(128, 64)) << "the model's";
  EXPECT_EQ(size_of({}, 128 * 64 - 1), std::pair(112, 48));
  EXPECT_EQ(size_of({}, 64 * 32), std::pair(64, 32));
  EXPECT_EQ(default_size(backend.info, {.max_pixels = 64 * 32}).width, 64) << "as pages are told";
  EXPECT_THROW(size_of({.width = 64, .height = 64}, 64 * 32), ApiError);
  EXPECT_THROW(size_of({.width = 64}, 64 * 32), ApiError) << "the height is the model's";
  const auto steps_of = [&](std::optional<int> steps, int most) {
    Request request;
    request.prompts = {"a"};
    request.steps = steps;
    return completed_request(request, backend, {.max_steps = most}).request.steps;
  };
  EXPECT_EQ(steps_of({}, 200), 4) << "the model's";
  EXPECT_EQ(steps_of({}, 3), 3);
  EXPECT_THROW(steps_of(4, 3), ApiError);
}

// Such a size also leads to no noise levels, which the engine would tell first.
TEST(Fields, OfASizeAreRefusedByTheServersLimitFirst) {
  FakeEngine engine([](Backend& backend) {
    backend.complete = [](const Request&, const Hooks&) -> Request {
      throw InputError("the scheduler's options lead to no noise levels");
    };
  });
  Request request{.prompts = {"a"}, .width = 16384, .height = 16384};
  EXPECT_THAT(message_of<ApiError>([&] { completed_request(request, engine.backend(), {}); }),
              HasSubstr("at most 4194304 pixels here, this one has 268435456"));
}

// JSON Schema allows it, and Python's sliders send it.
TEST(Fields, MayBeWholeNumbersWithAPoint) {
  const auto r = read(R"({"prompt": "a", "n": 2.0, "steps": 3e0, "width": 6.4e1, "seed": 5.0})");
  EXPECT_EQ(r.num_images, 2);
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.width, 64);
  EXPECT_EQ(r.seed, 5u);
  EXPECT_EQ(read(R"({"prompt": "a", "seed": -0})").seed, 0u);
}

TEST(Fields, HaveTheModelsDefaults) {
  const auto r = read(R"({"prompt": "", "size": "auto", "steps": null})");
  EXPECT_EQ(r.width, 128);
  EXPECT_EQ(r.height, 64);
  EXPECT_EQ(r.steps, 4);
  EXPECT_NE(r.seed, read(R"({"prompt": ""})").seed) << "seeds are drawn";
}

TEST(Fields, AreRefusedByName) {
  for (const auto& [body, param] : std::vector<std::pair<std::string, std::string>>{
           {R"({})", "prompt"},
           {R"({"prompt": 3})", "prompt"},
           {R"({"prompt": "a", "n": 0})", "n"},
           {R"({"prompt": "a", "n": 11})", "n"},
           {R"({"prompt": "a", "n": 4294967297})", "n"},
           {R"({"prompt": "a", "n": 18446744073709551617})", "n"},
           {R"({"prompt": "a", "n": 3.9})", "n"},
           {R"({"prompt": "a", "n": "3"})", "n"},
           {R"({"prompt": "a", "seed": -2})", "seed"},
           {R"({"prompt": "a", "seed": "18446744073709551616"})", "seed"},
           {R"({"prompt": "a", "seed": 1.5})", "seed"},
           {R"({"prompt": "a", "seed": 1e300})", "seed"},
           {R"({"prompt": "a", "n": -1e300})", "n"},
           {R"({"prompt": "a", "size": "64x"})", "size"},
           {R"({"prompt": "a", "size": "64x64x64"})", "size"},
           {R"({"prompt": "a", "size": "-64x64"})", "size"},
           {R"({"prompt": "a", "size": "99999999999x64"})", "size"},
           {R"({"prompt": "a", "size": "65x64"})", "size"},
           {R"({"prompt": "a", "size": "4096x4096"})", "size"},
           {R"({"prompt": "a", "size": "65536x16"})", "size"},
           {R"({"prompt": "a", "size": "16x65536", "width": 16})", "size"},
           {R"({"prompt": "a", "shift": 0})", "shift"},
           {R"({"prompt": "a", "shift": -1.5})", "shift"},
           {R"({"prompt": "a", "shift": 1e-320})", "shift"},
           {R"({"prompt": "a", "frames": 2})", "frames"},
           {R"({"prompt": "a", "frames": 0})", "frames"},
           {R"({"prompt": "a", "layers": 2})", "layers"},
           {R"({"prompt": "a", "width": 40})", "width"},
           {R"({"prompt": "a", "steps": 201})", "steps"},
           {R"({"prompt": "a", "guidance": "x"})", "guidance"},
           {R"({"prompt": "a", "guidance": 2, "guidance_scale": "x"})", "guidance_scale"},
           {R"({"prompt": "a", "steps": 2, "num_inference_steps": 0})", "num_inference_steps"},
           {R"({"prompt": "a", "guidance": -1e308})", "guidance"},
           {R"({"prompt": "a", "lora": [{"name": "ink", "scale": 1e39}]})", "lora"},
           {R"({"prompt": "a\u0000b"})", "prompt"},
           {R"({"prompt": "a", "lora": 3})", "lora"},
           {R"({"prompt": "a", "lora": [{"scale": 1}]})", "lora"},
           {R"({"prompt": "a", "lora": [{"name": "gone"}]})", "lora"},
           {R"({"prompt": "a", "lora": [{"name": "ink", "path": "/etc/passwd"}]})", "lora"},
           {R"({"prompt": "a", "lora": [{"name": "ink", "scale": "x"}]})", "lora"}}) {
    const auto found = refusal(body);
    EXPECT_EQ(found.status, 400) << body;
    EXPECT_EQ(found.param, param) << body << ": " << found.message;
  }
}

TEST(Fields, WithTwoNamesHaveOneValue) {
  using Fields = std::vector<std::string>;
  for (const auto& [body, names] : std::vector<std::pair<std::string, Fields>>{
           {R"("steps": 1, "num_inference_steps": 2)", {"'steps'", "'num_inference_steps'"}},
           {R"("guidance": 1, "guidance_scale": 2)", {"'guidance'", "'guidance_scale'"}},
           {R"("true_cfg": 1.5, "true_cfg_scale": 2)", {"'true_cfg'", "'true_cfg_scale'"}},
           {R"("size": "64x64", "width": 32)", {"'size'", "'width'"}},
           {R"("size": "64x64", "height": 32)", {"'size'", "'height'"}},
           {R"("sampler": "heun", "sampler_name": "lcm")", {"'sampler'", "'sampler_name'"}},
           {R"("schedule": "beta", "scheduler": "karras")", {"'schedule'", "'scheduler'"}}}) {
    const auto found = refusal(R"({"prompt": "a", )" + body + "}");
    EXPECT_EQ(found.status, 400) << body;
    EXPECT_EQ("'" + found.param + "'", names[1]) << body;
    EXPECT_EQ(found.message.find(names[0] + " and " + names[1] + " should be equal"), 0u)
        << found.message;
  }
  EXPECT_THAT(refusal(R"({"prompt": "a", "steps": 1, "num_inference_steps": 2})").message,
              HasSubstr("they are 1 and 2"));
  const auto r = read(R"({"prompt": "a", "steps": 3, "num_inference_steps": 3.0, "guidance": 2,
                          "guidance_scale": 2.0, "true_cfg": 1.5, "true_cfg_scale": 1.5,
                          "size": "64x32", "width": 64, "height": 32, "sampler": "heun",
                          "sampler_name": "Heun", "schedule": "model", "scheduler": "Automatic"})");
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(r.height, 32);
  EXPECT_EQ(r.sampling.sampler, Sampler::kHeun);
  EXPECT_EQ(read(R"({"prompt": "a", "size": "auto", "width": 32})").width, 32);
  EXPECT_EQ(read(R"({"prompt": "a", "steps": null, "num_inference_steps": 2})").steps, 2);
}

// curl sends a file without a name and a type where `<` stands for `@`.
TEST(Fields, OfAFormSayWhichIsNoText) {
  const auto complaint = [](const Part& part) -> Refusal {
    try {
      (void)Fields({part});
    } catch (const ApiError& error) {
      return {error.status, error.param, error.what(), error.code};
    }
    return {};
  };
  const auto found = complaint(Part{"image", false, "", "\x89PNG"});
  EXPECT_EQ(found.status, 400);
  EXPECT_EQ(found.param, "image");
  EXPECT_THAT(found.message,
              HasSubstr("'image' should be text in UTF-8, or a file with a file name "
                        "or a content type such as image/png"));
  EXPECT_EQ(complaint(Part{"image", true, "", "\x89PNG"}).status, 0);
  EXPECT_THAT(complaint(Part{"\xff", false, "", ""}).message,
              HasSubstr("a name that is not UTF-8"));
}

// What reading `form` complains of, if the caller reads `seed` as text and `mask` as a file.
// Two characters of text become a hundred bytes.
TEST(Fields, HaveABoundedNumberOfValues) {
  const auto many = [](std::size_t values) {
    std::string list = "[{}";
    for (std::size_t i = 2; i < values; ++i) list += ",{}";  // the list is a value, too
    return list + "]";
  };
  const auto found = refusal(R"({"prompt": "a", "x": )" + many(100'000) + "}");
  EXPECT_EQ(found.status, 400);
  EXPECT_EQ(found.code, "invalid_json");
  EXPECT_EQ(found.message, "the request should have at most 100000 JSON values, it has more");
  EXPECT_EQ(refusal(R"({"prompt": "a", "x": )" + many(99'998) + "}").code, "unknown_parameter");
  Fields form(std::vector<Part>{{"sigmas[]", false, "", "1." + std::string(40, '0')}});
  EXPECT_THROW(form.numbers("sigmas"), ApiError) << "texts of forms are parsed, too";
}

Refusal refusal_of_form(const std::vector<Part>& form, UnknownFields unknown) {
  try {
    Fields fields(form, unknown);
    (void)fields.seed();
    (void)fields.files("mask");
    (void)fields.list("lora", 4);
    (void)fields.numbers("sigmas");
    fields.accept_unused({"style"});
    fields.finish();
    if (!fields.warnings().empty()) return {0, "", fields.warnings().front(), ""};
  } catch (const ApiError& error) {
    return {error.status, error.param, error.what(), error.code};
  }
  return {};
}

// A known field is refused even where unknown ones are only warned of.
TEST(Fields, OfAFormThatAreTextAreNoFiles) {
  for (const auto unknown : {UnknownFields::kRefused, UnknownFields::kWarnedOf}) {
    const auto found = refusal_of_form({{"seed", true, "seed.txt", "5"}}, unknown);
    EXPECT_EQ(found.status, 400);
    EXPECT_EQ(found.param, "seed");
    EXPECT_EQ(found.message, "'seed' should be text, it is a file");
    EXPECT_EQ(refusal_of_form({{"mask", true, "m.png", "x"}}, unknown).message, "");
    EXPECT_EQ(refusal_of_form({{"style", true, "s.txt", "x"}}, unknown).message,
              "'style' is not used: it means nothing here");
  }
  const auto other = refusal_of_form({{"b", true, "b.png", "x"}}, UnknownFields::kRefused);
  EXPECT_EQ(other.message, "there is no field 'b' for a file");
}

// Browsers send such a part for a file that nobody chose.
TEST(Fields, OfAFormWithoutAFileAreAbsent) {
  const Part unchosen{"mask", true, "", "", true};
  Fields fields(std::vector<Part>{unchosen});
  EXPECT_TRUE(fields.files("mask").empty());
  EXPECT_NO_THROW(fields.finish());
  EXPECT_EQ(refusal_of_form({{"seed", true, "", "", true}}, UnknownFields::kRefused).message, "");
  Fields empty(std::vector<Part>{{"mask", true, "m.png", ""}});
  EXPECT_EQ(empty.files("mask").size(), 1u) << "somebody chose it";
  EXPECT_EQ(refusal_of_form({{"mask", false, "", ""}}, UnknownFields::kRefused).message,
            "'mask' should be a picture, or left out where there is none: it is empty");
}

TEST(Fields, OfAFormAppearOnceUnlessTheyAreLists) {
  using Form = std::vector<Part>;
  const Part one{"sigmas", false, "", "1"}, element{"sigmas[]", false, "", "0.5"};
  for (const auto& form : {Form{one, one}, Form{one, element}, Form{element, one}}) {
    const auto found = refusal_of_form(form, UnknownFields::kRefused);
    EXPECT_EQ(found.message, "the field 'sigmas' appears twice") << form[1].name;
    EXPECT_EQ(found.param, "sigmas");
  }
  Fields list(Form{element, element});
  EXPECT_EQ(list.numbers("sigmas"), (std::vector<double>{0.5, 0.5}));
}

TEST(Fields, OfAFormMayHaveBooleansAsPythonWritesThem) {
  const auto flag = [](std::string_view text) {
    return Fields(std::vector<Part>{{"stream", false, "", text}}).flag("stream");
  };
  for (const auto* const on : {"true", "True"}) EXPECT_EQ(flag(on), true) << on;
  for (const auto* const off : {"false", "False"}) EXPECT_EQ(flag(off), false) << off;
  for (const auto* const odd : {"TRUE", "tRue", "yes", "True "})
    EXPECT_THROW((void)flag(odd), ApiError) << odd;
  Fields prompt(std::vector<Part>{{"prompt", false, "", "True"}});
  EXPECT_EQ(prompt.text("prompt", 10), "True") << "a text stays one";
  EXPECT_THROW((void)Fields(R"({"stream": "True"})").flag("stream"), ApiError) << "no form";
}

TEST(Fields, OfAFormNameTheListThatIsNoJson) {
  const auto complaint = [](std::string_view text) {
    return refusal_of_form({{"lora", false, "", text}}, UnknownFields::kRefused);
  };
  const auto found = complaint("[{]");
  EXPECT_EQ(found.status, 400);
  EXPECT_EQ(found.param, "lora");
  EXPECT_EQ(found.code, "invalid_json");
  EXPECT_THAT(found.message,
              HasSubstr("'lora' is not valid JSON: parse error at line 1, column 3"));
  EXPECT_EQ(complaint(R"([], "other": [])").code, "invalid_json");
  const auto deep = complaint("[" + std::string(40, '[') + std::string(40, ']') + "]");
  EXPECT_EQ(deep.message, "'lora' nests JSON deeper than 32 levels");
}

TEST(Fields, OfSecondPromptsMayBeEmpty) {
  const auto r = read(R"({"prompt": "a", "prompt_2": "", "negative_prompt_2": ""})");
  EXPECT_TRUE(r.prompts_2.empty());
  EXPECT_FALSE(r.negative_prompt_2);
  EXPECT_EQ(read(R"({"prompt": "a", "negative_prompt_2": "b"})").negative_prompt_2, "b");
  EXPECT_EQ(read(R"({"prompt": "a", "negative_prompt": ""})").negative_prompt, "") << "asked for";
}

TEST(Fields, SayThatTheModelHasNeitherFramesNorLayers) {
  EXPECT_EQ(refusal(R"({"prompt": "a", "frames": 2})").message,
            "this model draws pictures, of one frame each: 'frames' should be 1, it is 2");
  EXPECT_EQ(refusal(R"({"prompt": "a", "frames": 1})").message, "");
  for (const std::string layers : {"0", "1", "2"})
    EXPECT_EQ(refusal(R"({"prompt": "a", "layers": )" + layers + "}").message,
              "this model draws no layers: 'layers' should be left out, it is there");
}

TEST(Fields, RefuseWhatIsNoJson) {
  for (const std::string body :
       {"", "{", "[1]", "3", R"({"prompt": "a", "prompt": "b"})", "{\"prompt\": \"\xff\"}",
        R"({"prompt": "a", "guidance": 1e400})"}) {
    EXPECT_EQ(refusal(body).status, 400) << body;
    EXPECT_EQ(refusal(body).code, "invalid_json") << body;
    EXPECT_EQ(refusal(body).message.find("json.exception"), std::string::npos) << body;
  }
}

TEST(Fields, RefuseBottomlessNesting) {
  const std::string deep = R"({"prompt": )" + std::string(100'000, '[');
  EXPECT_THAT(refusal(deep).message, HasSubstr("nests JSON deeper than 100"));
}

TEST(Fields, RefuseAModelThatIsNotThere) {
  const auto found = refusal(R"({"prompt": "a", "model": "sdxl"})");
  EXPECT_EQ(found.status, 404);
  EXPECT_EQ(found.code, "model_not_found");
}

TEST(Fields, PassOnWhatTheEngineRefuses) {
  EXPECT_EQ(refusal(R"({"prompt": "refused"})").message, "this prompt is refused");
}

}  // namespace braid::serve::fields_test
