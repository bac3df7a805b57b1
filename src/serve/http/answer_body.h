// The body of an answer for Boost: text of its own, or a file that others hold, too.
#pragma once

#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/optional.hpp>

#include "serve/messages.h"

namespace braid::serve {

// A copy of a file for each of its readers would cost megabytes until the slowest has it.
struct AnswerBody {
  struct value_type {
    std::string text = {};
    FileBytes file = {};  // sent in place of the text, unless it is null

    const std::string& bytes() const { return file ? *file : text; }
    std::size_t size() const { return bytes().size(); }
  };
  static std::uint64_t size(const value_type& body) { return body.size(); }

  class writer {
   public:
    using const_buffers_type = boost::asio::const_buffer;

    template <bool is_request, class Fields>
    writer(const boost::beast::http::header<is_request, Fields>&, const value_type& body)
        : bytes_(body.bytes()) {}
    static void init(boost::beast::error_code& error) { error = {}; }
    boost::optional<std::pair<const_buffers_type, bool>> get(
        boost::beast::error_code& error) const {
      error = {};
      return std::pair(const_buffers_type(bytes_.data(), bytes_.size()), /*has_more=*/false);
    }

   private:
    const std::string& bytes_;
  };
};

}  // namespace braid::serve
