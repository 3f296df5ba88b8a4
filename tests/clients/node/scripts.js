// Scripts of applications, as locks have them.

export const DELETE_IF_EQUAL = `if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("DEL", KEYS[1])
end
return 0`;
