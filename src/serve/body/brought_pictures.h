// The pictures that clients send, in the terms of each API.
#pragma once

#include "image/input_file.h"
#include "serve/body/picture_request.h"

namespace braid::serve {

// A request's pictures, and what its picture's file says of them: the client's file names if any,
// else their roles.
struct BroughtPictures {
  PicturesIn pictures;
  std::vector<InputFile> files;
};

// The pictures of a request of which only the heads were looked at: all of them are counted before
// one takes time and memory.
class UndecodedPictures {
 public:
  explicit UndecodedPictures(const RequestBounds& bounds) : pixels_left_(bounds.max_input_pixels) {}

  // Holes are a mask's: what is transparent is drawn anew, or its white where nothing is.
  enum class Role { kInit, kMask, kHoles, kReference, kControl };
  // Throws ApiError naming the field, for what is no picture and for too many pixels in all.
  void add(Role role, const std::string& field, BroughtFile file);

  // What else is said of the pictures, which are all there and empty.
  PicturesIn& settings() { return in_; }
  std::size_t num_bytes() const { return num_bytes_; }  // once they are decoded

  // Throws ApiError naming the field.
  BroughtPictures decoded() &&;

 private:
  struct Undecoded {
    Role role;
    std::string field;
    BroughtFile file;
  };

  std::uint64_t pixels_left_;
  std::size_t num_bytes_ = 0;
  std::vector<Undecoded> undecoded_;
  PicturesIn in_;
};

// Each throws ApiError naming the field: for what is no picture, and for more pixels in all than
// bounds.max_input_pixels.

// `init`, `mask`, `reference`, `control`, each a file or base64, `strength`, and what
// read_picture_options() reads.
UndecodedPictures read_own_pictures(Fields& fields, const RequestBounds& bounds);

// OpenAI's `image` and `mask`, and the same. What they are to the model: what it looks at, if it
// looks at any and there is neither a mask nor a strength; else the first is what it starts from. A
// mask's holes are drawn anew, or its white where it has none.
UndecodedPictures read_edited_pictures(Fields& fields, const ModelInfo& info,
                                       const RequestBounds& bounds);

// AUTOMATIC1111's `init_images`, `mask` and `denoising_strength`; what else it has of them is
// apply_sdapi_options()'s.
UndecodedPictures read_sdapi_pictures(Fields& fields, const ModelInfo& info,
                                      const RequestBounds& bounds);

}  // namespace braid::serve
