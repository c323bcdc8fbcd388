-- A mixed workload for the lua interpreter; the output depends on the scale
-- only.  usage: lua work.lua [SCALE]
local scale = tonumber(arg and arg[1]) or 40

-- The same sequence on every machine.
local seed = 42
local function random(n)
  seed = seed * 16807 % 2147483647
  return seed % n + 1
end

local function tables()
  local t, sum = {}, 0
  for i = 1, 20000 do t[i] = i * 7 % 1000 end
  for i = 1, 2000 do t["key" .. i % 500] = i end
  for _, v in ipairs(t) do sum = sum + v end
  for _ = 1, 5000 do table.insert(t, random(100)) end
  for _ = 1, 5000 do sum = sum + table.remove(t) end
  return sum
end

local function strings()
  local parts = {}
  for i = 1, 3000 do
    parts[#parts + 1] = string.format("%05d:%s", i, ("x"):rep(i % 20))
  end
  local s = table.concat(parts, ",")
  local n = 0
  for number, tail in s:gmatch("(%d+):(x*)") do n = n + #number + #tail end
  return n + #s:upper() + s:byte(random(#s)) + (s:find("02999", 1, true) or 0)
end

local function gsubs()
  local text = ("the quick brown fox jumps over the lazy dog "):rep(100)
  local count = 0
  local swapped = text:gsub("(%w+) (%w+)", "%2 %1")
  local marked = swapped:gsub("%w+", function(w)
    count = count + 1
    if #w > 4 then return w:reverse() end
  end)
  local named = marked:gsub("%w+", { the = "THE", fox = "FOX" })
  return count + #named
end

local function closures()
  local function counter(step)
    local n = 0
    return function() n = n + step; return n end
  end
  local sum = 0
  for i = 1, 2000 do
    local f = counter(i)
    for _ = 1, 10 do sum = sum + f() end
  end
  return sum
end

local function errors()
  local caught = 0
  local function fail(depth)
    if depth == 0 then error({ code = 3 }) end
    return 1 + fail(depth - 1)
  end
  for i = 1, 1500 do
    local ok, e = pcall(fail, i % 12)
    if not ok then caught = caught + e.code end
    ok, e = pcall(string.rep)               -- an error raised in C
    if not ok then caught = caught + #e end
    -- an error through a sort's comparison and a gsub's callback
    ok = pcall(table.sort, { 3, 1, 2 }, function() error("no order") end)
    if not ok then caught = caught + 1 end
    ok = pcall(string.gsub, "abc", "%w", function() error("no", 0) end)
    if not ok then caught = caught + 1 end
  end
  return caught
end

local function coroutines()
  local function walk(n)
    if n > 0 then
      walk(n - 1)
      coroutine.yield(n)
      walk(n - 1)
    end
  end
  local sum = 0
  for _ = 1, 5 do
    for n in coroutine.wrap(function() walk(10) end) do sum = sum + n end
  end
  -- one that dies by an error, and many that are never finished
  for i = 1, 200 do
    local co = coroutine.create(function() coroutine.yield(i); error("end") end)
    coroutine.resume(co)
    if i % 2 == 0 then
      local ok = coroutine.resume(co)
      if not ok then sum = sum + 1 end
    end
  end
  -- a yield across a pcall
  local co = coroutine.wrap(function()
    for i = 1, 500 do pcall(function() coroutine.yield(i); error("x") end) end
    return 0
  end)
  repeat local v = co(); sum = sum + v until v == 0
  return sum
end

local function sorts()
  local t = {}
  for i = 1, 4000 do t[i] = random(1000000) end
  table.sort(t)
  table.sort(t, function(x, y)
    if x % 1000 ~= y % 1000 then return x % 1000 < y % 1000 end
    return x > y
  end)
  return t[1] + t[2000] + t[4000]
end

local function objects()
  local Point = {}
  Point.__index = Point
  Point.__add = function(p, q) return setmetatable({ x = p.x + q.x, y = p.y + q.y }, Point) end
  function Point:norm() return self.x * self.x + self.y * self.y end
  local p = setmetatable({ x = 0, y = 0 }, Point)
  local step = setmetatable({ x = 1, y = 2 }, Point)
  local sum = 0
  for _ = 1, 5000 do p = p + step; sum = (sum + p:norm()) % 1000003 end
  return sum
end

local function loads()
  local sum = 0
  for i = 1, 100 do
    local f = load("local a = " .. i .. " local function g(x) return x * a + 1 end return g(2) + g(3)")
    sum = sum + f()
    if not load("return return " .. i) then sum = sum + 1 end
  end
  return sum
end

local parts = {
  { "tables", tables }, { "strings", strings }, { "gsubs", gsubs },
  { "closures", closures }, { "errors", errors }, { "coroutines", coroutines },
  { "sorts", sorts }, { "objects", objects }, { "loads", loads },
}
for _, part in ipairs(parts) do
  local sum = 0
  for _ = 1, scale do sum = (sum + part[2]()) % 1000000007 end
  print(part[1], sum)
end
